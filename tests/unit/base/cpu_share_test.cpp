// SPDX-License-Identifier: MIT
#include "base/cpu_share.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

constexpr std::uint64_t ms = 1'000'000, start = 1'000 * ms;

TEST(CpuShare, SomeAtOnceThenAPartOfAllTime) {
  CpuShare share(10, 5 * ms);
  EXPECT_TRUE(share.has_left(start));
  share.use(4 * ms, start);
  EXPECT_TRUE(share.has_left(start));
  share.use(1 * ms, start);
  EXPECT_FALSE(share.has_left(start));
  EXPECT_TRUE(share.has_left(start + 1)) << "as soon as some is paid for";
  EXPECT_EQ(share.next_ns(), start + 1);
  share.use(3 * ms, start + 1);
  EXPECT_FALSE(share.has_left(start + 30 * ms));
  EXPECT_TRUE(share.has_left(start + 31 * ms));
  EXPECT_EQ(share.next_ns(), start + 30 * ms + 1);
}

TEST(CpuShare, IsUnusedOnceAllIsPaidFor) {
  CpuShare share(10, 5 * ms);
  EXPECT_TRUE(share.is_unused(0));
  EXPECT_EQ(share.next_ns(), 1U);
  share.use(2 * ms, start);
  EXPECT_FALSE(share.is_unused(start + 19 * ms));
  EXPECT_EQ(share.unpaid_ns(start + 19 * ms), ms);
  EXPECT_TRUE(share.is_unused(start + 20 * ms));
  EXPECT_EQ(share.unpaid_ns(start + 21 * ms), 0U);
}

}  // namespace
}  // namespace rtev
