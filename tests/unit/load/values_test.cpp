// SPDX-License-Identifier: MIT
#include "load/values.hpp"

#include <gtest/gtest.h>

namespace rtev::load {
namespace {

TEST(Count, TakesPowersOf1000) {
  const struct {
    std::string_view text;
    std::uint64_t value;
  } cases[] = {{"0", 0},
               {"1", 1},
               {"250k", 250'000},
               {"1.5M", 1'500'000},
               {"0.5k", 500},
               {"1G", 1'000'000'000},
               {"1000000G", 1'000'000'000'000'000}};
  for (const auto& [text, value] : cases) EXPECT_EQ(parse_count(text), value) << text;
}

TEST(Count, RefusesWhatIsNone) {
  for (const std::string_view text : {"", "k", "-1", "0.5", "1.0005k", "1K", "1m", "1 k", "1kk", "+1", "1e3", "nan",
                                      "inf", "max", "1000001G", "99999999999999999999999"})
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
}

}  // namespace
}  // namespace rtev::load
