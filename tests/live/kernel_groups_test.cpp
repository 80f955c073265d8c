// SPDX-License-Identifier: MIT
// How much memory the control group of a process has left, as BPF reads it.
#include <gtest/gtest.h>
#include <unistd.h>

#include "inspect/procfs.hpp"
#include "kernel/group_memory.hpp"
#include "live/kernel_fixture.hpp"
#include "live/memory_group.hpp"

namespace rtev::kernel {
namespace {

TEST_F(KernelLive, TheMemoryThatAControlGroupHasLeftIsKnown) {
  const auto group = test::MemoryGroup::make();
  if (!group) GTEST_SKIP() << "there is no place for a control group";
  const Child child([] {});
  const auto stat = Procfs().stat(child.pid());
  ASSERT_TRUE(stat);
  const GroupMemory memory;
  const auto left = memory.left(child.pid(), stat->start_ticks);
  ASSERT_TRUE(left);
  constexpr std::uint64_t limit_bytes = 64 << 20, lower_bytes = limit_bytes / 2;
  ASSERT_TRUE(group->add(child.pid()));
  EXPECT_EQ(memory.left(child.pid(), stat->start_ticks), left) << "it has no limit yet";
  ASSERT_TRUE(group->limit(limit_bytes));
  const auto limited = memory.left(child.pid(), stat->start_ticks);
  ASSERT_TRUE(limited);
  EXPECT_GT(*limited, lower_bytes);
  EXPECT_LE(*limited, limit_bytes);
  EXPECT_FALSE(memory.left(child.pid(), stat->start_ticks + 1)) << "of another process with the pid";
}

}  // namespace
}  // namespace rtev::kernel
