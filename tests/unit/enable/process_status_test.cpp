// SPDX-License-Identifier: MIT
// What /proc says of a process, also if it is cut.
#include "enable/process_status.hpp"

#include <gtest/gtest.h>

#include <string>

namespace rtev::enable {
namespace {

constexpr std::string_view status_text =
    "Name:\tUid: 0\n"
    "TracerPid:\t7\n"
    "Uid:\t1000\t1001\t1002\t1003\n"
    "Gid:\t100\t101\t102\t103\n"
    "Groups:\t4 24 4294967294 \n"
    "NSpid:\t4711\t12\n"
    "VmSize:\t    2048 kB\n"
    "CapPrm:\t00000000a80425fb\n"
    "CapEff:\t0000000000000002\n"
    "Seccomp:\t2\n";

TEST(ProcessStatusTest, HasIdsAndRights) {
  const auto status = parse_status(status_text);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->ns_pid, 12);
  EXPECT_EQ(status->user_ids, (std::array<std::uint32_t, 4>{1000, 1001, 1002, 1003}));
  EXPECT_EQ(status->group_ids, (std::array<std::uint32_t, 4>{100, 101, 102, 103}));
  EXPECT_EQ(status->groups, (std::vector<gid_t>{4, 24, 4294967294}));
  EXPECT_EQ(status->capabilities, 2u);
  EXPECT_EQ(status->permitted_capabilities, 0xa80425fbu);
  EXPECT_EQ(status->tracer_pid, 7);
  EXPECT_EQ(status->seccomp, 2);
  EXPECT_EQ(status->memory_bytes, 2048u << 10);
}

TEST(ProcessStatusTest, WithoutIdsIsNone) {
  for (const std::string_view key : {"Uid:\t1000", "Gid:", "NSpid:", "CapEff:"}) {
    std::string text(status_text);
    text.replace(text.rfind(key), 3, "xxx");
    EXPECT_FALSE(parse_status(text)) << key;
  }
}

TEST(ProcessStatusTest, ThatIsCutIsNone) {
  EXPECT_FALSE(parse_status(status_text.substr(0, status_text.size() - 1)));
  EXPECT_FALSE(parse_status(""));
}

TEST(ProcessStatusTest, LimitsAreTheSoftOnes) {
  const ProcessLimits limits = parse_limits(
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max file size             4096                 unlimited            bytes     \n"
      "Max open files            1024                 524288               files     \n"
      "Max address space         unlimited            unlimited            bytes     \n");
  EXPECT_EQ(limits.file_bytes, 4096u);
  EXPECT_EQ(limits.open_files, 1024u);
  EXPECT_EQ(limits.address_space, UINT64_MAX);
}

TEST(ProcessStatusTest, AVariableHasItsWholeName) {
  using namespace std::string_view_literals;
  constexpr auto environment = "XA=1\0A\0AB=2\0A=3=4\0A=5\0"sv;
  EXPECT_EQ(variable_in(environment, "A"), "3=4");
  EXPECT_FALSE(variable_in(environment, "B"));
  EXPECT_EQ(variable_in("A="sv, "A"), "");
}

}  // namespace
}  // namespace rtev::enable
