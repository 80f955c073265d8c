// SPDX-License-Identifier: MIT
// Records of the BPF programs that switch events on: of which process they are.
#include "kernel/enable_programs.hpp"

#include <gtest/gtest.h>

namespace rtev::kernel {
namespace {

TEST(EnableProgramsTest, ARecordIsOfAProcessByPidAndStart) {
  constexpr std::uint64_t start_ticks = 123'456;
  const auto started_at = [](std::uint64_t time_ns) {
    rtev_running record{};
    record.start_time = time_ns;
    return record;
  };
  // As the kernel makes ticks of it: rounded down.
  for (const std::uint64_t rest_ns : {std::uint64_t{0}, std::uint64_t{1}, ns_per_tick - 1})
    EXPECT_TRUE(is_of(started_at(start_ticks * ns_per_tick + rest_ns), start_ticks)) << rest_ns;
  EXPECT_FALSE(is_of(started_at(start_ticks * ns_per_tick - 1), start_ticks));
  EXPECT_FALSE(is_of(started_at((start_ticks + 1) * ns_per_tick), start_ticks));
}

}  // namespace
}  // namespace rtev::kernel
