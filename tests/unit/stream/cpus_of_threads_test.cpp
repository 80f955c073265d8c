// SPDX-License-Identifier: MIT
#include "stream/cpus_of_threads.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace rtev {
namespace {

TEST(CpusOfThreads, AThreadIsOnOneCpuUntilItLeaves) {
  CpusOfThreads cpus;
  EXPECT_FALSE(cpus.find(7));
  EXPECT_TRUE(cpus.enter(7, 3));
  EXPECT_FALSE(cpus.enter(7, 4)) << "it has not left";
  EXPECT_EQ(cpus.find(7), 3u);
  cpus.leave(7);
  cpus.leave(7);
  EXPECT_FALSE(cpus.find(7));
  EXPECT_TRUE(cpus.enter(7, 4));
  EXPECT_EQ(std::as_const(cpus).find(7), 4u);
}

TEST(CpusOfThreads, ThoseThatLeftGiveWayToOthers) {
  CpusOfThreads cpus;
  ASSERT_TRUE(cpus.enter(1, 0));
  for (std::int32_t tid = 2; tid < 100'000; ++tid) {
    ASSERT_TRUE(cpus.enter(tid, 1));
    cpus.leave(tid);
  }
  EXPECT_EQ(cpus.find(1), 0u);
  EXPECT_LT(cpus.size(), 5'000u);
}

}  // namespace
}  // namespace rtev
