// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "stream/thread_tracker.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

constexpr std::int32_t pid = 100;

Thread thread(std::int32_t tid, std::int32_t domain, ThreadRole role = ThreadRole::mutator) {
  Thread made = make_thread(pid, tid, "server", true);
  made.domain = domain;
  made.role = role;
  return made;
}
Thread idle() {
  return make_thread(0, 0, "swapper", false);
}

class DomainThreadsTest : public ::testing::Test {
 protected:
  void enter(std::uint32_t cpu, const Thread& next) {
    threads.add(++now, {.cpu = cpu, .state = LeftState::idle, .prev = idle(), .next = next});
  }
  void leave(std::uint32_t cpu, const Thread& prev, LeftState state = LeftState::sleeping) {
    threads.add(++now, {.cpu = cpu, .state = state, .prev = prev, .next = idle()});
  }
  std::uint64_t now = 0;
  ThreadTracker threads;
};

TEST_F(DomainThreadsTest, WithoutTheSchedulerOnlyDomain0IsKnown) {
  EXPECT_EQ(threads.writer_of(pid, 0), pid);
  EXPECT_EQ(threads.writer_of(pid, 1), std::nullopt);
}

/// Recordings may say anything.
TEST_F(DomainThreadsTest, AThreadWithoutANumberIsNobody) {
  enter(0, thread(0, 1));
  EXPECT_EQ(threads.writer_of(pid, 1), std::nullopt);
  EXPECT_EQ(threads.writer_of(pid, 2), std::nullopt);
  EXPECT_EQ(threads.writer_of(pid, 0), pid);
}

TEST_F(DomainThreadsTest, AMutatorOnACpuComesBeforeTheBackupThread) {
  enter(0, thread(101, 1));
  enter(1, thread(102, 1, ThreadRole::backup));
  EXPECT_EQ(threads.writer_of(pid, 1), 101);
  leave(0, thread(101, 1));
  EXPECT_EQ(threads.writer_of(pid, 1), 102);
  leave(1, thread(102, 1, ThreadRole::backup));
  EXPECT_EQ(threads.writer_of(pid, 1), 102) << "who was last";
  enter(1, thread(101, 1));
  EXPECT_EQ(threads.writer_of(pid, 1), 101);
}

TEST_F(DomainThreadsTest, WhoLeftWithTheLockKeepsTheDomain) {
  Thread holder = thread(101, 1);
  enter(0, holder);
  holder.holds_lock = true;
  leave(0, holder);
  enter(1, thread(102, 1, ThreadRole::backup));
  EXPECT_EQ(threads.writer_of(pid, 1), 101) << "the backup thread cannot run the domain";
  leave(1, thread(102, 1, ThreadRole::backup));
  enter(1, thread(103, 1));
  EXPECT_EQ(threads.writer_of(pid, 1), 101) << "nor can another one";
  leave(1, thread(103, 1));
  EXPECT_EQ(threads.writer_of(pid, 1), 101);
  enter(0, holder);
  leave(0, thread(101, 1));
  enter(1, thread(102, 1, ThreadRole::backup));
  EXPECT_EQ(threads.writer_of(pid, 1), 102) << "it had no lock this time";
}

TEST_F(DomainThreadsTest, WhoIsFirstSeenAsItLeavesWithTheLockHasTheDomain) {
  enter(1, thread(102, 1, ThreadRole::backup));
  leave(1, thread(102, 1, ThreadRole::backup));
  Thread holder = thread(101, 1);
  holder.holds_lock = true;
  leave(0, holder, LeftState::preempted);
  EXPECT_EQ(threads.writer_of(pid, 1), 101);
}

TEST_F(DomainThreadsTest, TheBackupThreadIsNoMutator) {
  EXPECT_EQ(threads.mutator_of(pid, 0), pid);
  enter(0, thread(102, 1, ThreadRole::backup));
  EXPECT_EQ(threads.mutator_of(pid, 1), std::nullopt);
  enter(1, thread(101, 1));
  leave(1, thread(101, 1));
  EXPECT_EQ(threads.writer_of(pid, 1), 102);
  EXPECT_EQ(threads.mutator_of(pid, 1), 101);
  leave(0, thread(102, 1, ThreadRole::backup));
  EXPECT_EQ(threads.mutator_of(pid, 1), 101);
}

TEST_F(DomainThreadsTest, ADomainIsLearntWhenItsThreadLeaves) {
  enter(0, thread(101, -1, ThreadRole::unknown));
  EXPECT_EQ(threads.writer_of(pid, 5), 101) << "there is no other";
  enter(1, thread(103, -1, ThreadRole::unknown));
  EXPECT_EQ(threads.writer_of(pid, 5), std::nullopt) << "it may be either";
  leave(1, thread(103, 6));
  EXPECT_EQ(threads.writer_of(pid, 6), 103);
  EXPECT_EQ(threads.writer_of(pid, 5), 101);
}

TEST_F(DomainThreadsTest, ANewThreadOnACpuComesBeforeASleepingBackupThread) {
  enter(1, thread(102, 1, ThreadRole::backup));
  leave(1, thread(102, 1, ThreadRole::backup));
  EXPECT_EQ(threads.writer_of(pid, 1), 102);
  enter(0, thread(101, -1, ThreadRole::unknown));
  EXPECT_EQ(threads.writer_of(pid, 1), 101);
}

TEST_F(DomainThreadsTest, TheTickThreadNeverWrites) {
  enter(0, thread(101, 0, ThreadRole::tick));
  EXPECT_EQ(threads.writer_of(pid, 0), pid);
}

TEST_F(DomainThreadsTest, ThreadsThatEndedAreForgotten) {
  enter(0, thread(101, 1));
  const std::uint64_t version = threads.writers_version();
  leave(0, thread(101, 1), LeftState::dead);
  EXPECT_EQ(threads.writer_of(pid, 1), std::nullopt);
  EXPECT_NE(threads.writers_version(), version);
  enter(0, thread(101, 2));
  threads.forget_process(pid, now);
  EXPECT_EQ(threads.writer_of(pid, 2), std::nullopt);
}

TEST_F(DomainThreadsTest, ATidThatComesBackInAnotherProcessIsAnotherThread) {
  enter(0, thread(101, 1));
  Thread other = thread(101, 3);
  other.pid = 200;
  enter(1, other);
  EXPECT_EQ(threads.writer_of(pid, 1), std::nullopt);
  EXPECT_EQ(threads.writer_of(200, 3), 101);
}

TEST_F(DomainThreadsTest, ALostSwitchIsMadeUpForByTheNextOnThatCpu) {
  enter(0, thread(101, 1));
  enter(0, thread(102, 1));  // nobody said that 101 left
  leave(0, thread(102, 1));
  enter(1, thread(103, 1, ThreadRole::backup));
  EXPECT_EQ(threads.writer_of(pid, 1), 103) << "a mutator on a cpu would come first";
}

TEST_F(DomainThreadsTest, WhereSwitchesAreMissingAnotherThreadMayHaveTheDomain) {
  enter(1, thread(102, 1));
  leave(1, thread(102, 1));
  enter(0, thread(101, 1));
  EXPECT_EQ(threads.writer_of(pid, 1), 101);
  now = 100;
  threads.lose(now, 200);
  EXPECT_EQ(threads.writer_of(pid, 1), std::nullopt) << "101 may have left, and 102 have come";
  enter(0, thread(101, 1));
  EXPECT_EQ(threads.writer_of(pid, 1), std::nullopt) << "more may be missing after that";
  now = 200;
  enter(0, thread(101, 1));
  EXPECT_EQ(threads.writer_of(pid, 1), 101);
  leave(0, thread(101, 1));
  EXPECT_EQ(threads.writer_of(pid, 1), std::nullopt) << "102 may be on a cpu since";
  Thread holder = thread(101, 1);
  holder.holds_lock = true;
  enter(0, holder);
  leave(0, holder, LeftState::preempted);
  EXPECT_EQ(threads.writer_of(pid, 1), 101) << "nobody else can run";
  leave(1, thread(102, 1));
  leave(0, thread(101, 1));
  EXPECT_EQ(threads.writer_of(pid, 1), 101) << "all is known again";
}

TEST_F(DomainThreadsTest, ADomainWithOneMutatorStaysWithIt) {
  enter(1, thread(102, 1, ThreadRole::backup));
  leave(1, thread(102, 1, ThreadRole::backup));
  enter(0, thread(101, 1));
  threads.lose(now, now + 10);
  EXPECT_EQ(threads.writer_of(pid, 1), 101);
}

}  // namespace
}  // namespace rtev::test
