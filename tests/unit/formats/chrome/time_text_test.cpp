// SPDX-License-Identifier: MIT
#include "formats/chrome/time_text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace rtev::test {
namespace {

TEST(TimeText, IsTheSameWhateverTimeWasBefore) {
  TimeText times;
  for (const std::uint64_t ms :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{86'400'000}, UINT64_MAX / 1'000'000}) {
    for (const std::uint64_t ns : {0, 7, 999, 1'000, 45'006, 999'999, 12, 551'615}) {
      const std::uint64_t time = ms * 1'000'000 + ns;
      if (time < ms) continue;  // beyond the largest one
      std::string text(TimeText::max_bytes, ' ');
      text.resize(static_cast<std::size_t>(times.put(text.data(), time) - text.data()));
      EXPECT_EQ(text, fmt::format("{}.{:03}", time / 1000, time % 1000));
    }
  }
}

}  // namespace
}  // namespace rtev::test
