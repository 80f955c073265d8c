// SPDX-License-Identifier: MIT
// The maximum resident set size of a process in lifecycle records, compared with what wait4(2) returns to its parent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "live/kernel_fixture.hpp"

namespace rtev::kernel {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Lt;

constexpr std::uint64_t held_bytes = 64 << 20;

void hold_memory() {
  void* const memory =
      ::mmap(nullptr, held_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) ::_exit(1);
  std::memset(memory, 1, held_bytes);
  // Unmapped memory still counts towards the maximum.
  ::munmap(memory, held_bytes);
}

std::uint64_t bytes(std::uint32_t pages) {
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(KernelLive, ExitHasTheMaximumResidentSetSize) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  Child child{hold_memory};
  const pid_t pid = child.pid();
  ASSERT_TRUE(programs.track(pid, {}));
  child.release();
  rusage usage{};
  EXPECT_EQ(child.wait(&usage), 0);
  Records records;
  read(programs, records);
  const auto exits = records.of(RTEV_EXIT, pid);
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(bytes(exits[0].max_rss_pages), static_cast<std::uint64_t>(usage.ru_maxrss) * 1024);
  // Rough bounds, since the kernel counts pages of each cpu in batches. A forked child begins with its parent's memory.
  rusage parent{};
  ::getrusage(RUSAGE_SELF, &parent);
  const std::uint64_t inherited = static_cast<std::uint64_t>(parent.ru_maxrss) * 1024;
  EXPECT_THAT(bytes(exits[0].max_rss_pages), AllOf(Ge(held_bytes - held_bytes / 16), Lt(2 * held_bytes + inherited)));
}

TEST_F(KernelLive, ExecHasTheMaximumOfThePreviousPrograms) {
  Programs programs = start({.sched = RTEV_SCHED_OFF, .follow = true});
  Child child{[] {
    hold_memory();
    ::execl("/bin/true", "/bin/true", nullptr);
  }};
  const pid_t pid = child.pid();
  ASSERT_TRUE(programs.follow(pid));
  child.release();
  rusage usage{};
  EXPECT_EQ(child.wait(&usage), 0);
  Records records;
  read(programs, records);
  const auto execs = records.of(RTEV_EXEC, pid), exits = records.of(RTEV_EXIT, pid);
  ASSERT_EQ(execs.size(), 1U);
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_THAT(bytes(execs[0].max_rss_pages), Ge(held_bytes - held_bytes / 16));
  EXPECT_EQ(execs[0].max_rss_pages, exits[0].max_rss_pages) << "the second program had less";
  EXPECT_EQ(bytes(exits[0].max_rss_pages), static_cast<std::uint64_t>(usage.ru_maxrss) * 1024);
}

}  // namespace
}  // namespace rtev::kernel
