// SPDX-License-Identifier: MIT
// Scheduler records made of what /proc says of threads now and then.
#include "session/rootless/thread_sampler.hpp"

#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "stream/thread_tracker.hpp"
#include "support/temp_dir.hpp"

namespace rtev::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre, testing::IsEmpty;

constexpr std::uint64_t sample_ms = 1'000'000;
constexpr std::int32_t sampled_pid = 42;

/// Feeds the records to a ThreadTracker, and notes its intervals.
class SampledThreadTest : public ::testing::Test, private ThreadObserver {
 protected:
  SampledThreadTest() { sample_.time_ns = 100 * sample_ms; }

  /// Since the last sample it was on a CPU for `cpu_ms` and waited for one for `wait_ms`.
  void runs(std::uint64_t cpu_ms, std::uint64_t wait_ms = 0) {
    ++sample_.runs;
    sample_.cpu_ns += cpu_ms * sample_ms;
    sample_.wait_ns += wait_ms * sample_ms;
  }
  void sleeps(std::uint64_t times = 1) { sample_.sleeps += times; }
  void look(std::optional<LeftState> blocked_as = {}, Syscall syscall = Syscall::other) {
    sample_.blocked_as = blocked_as;
    sample_.syscall = syscall;
    thread_.add(sample_, [this](std::uint64_t time_ns, const SchedSwitch& change) {
      EXPECT_GE(time_ns, last_ns_);
      EXPECT_LE(time_ns, sample_.time_ns);
      last_ns_ = time_ns;
      tracker_.add(time_ns, change);
    });
    sample_.time_ns += 10 * sample_ms;
  }
  /// The next sample comes late.
  void late(std::uint64_t ms) { sample_.time_ns += ms * sample_ms; }
  void waits_in(Syscall syscall) { look(LeftState::sleeping, syscall); }
  /// "on-cpu 10": the intervals so far, rounded down to ms.
  std::vector<std::string> intervals() {
    tracker_.finish(sample_.time_ns - 10 * sample_ms);
    EXPECT_EQ(tracker_.inconsistent_switches(), 0u);
    return intervals_;
  }

 private:
  static Thread thread() {
    Thread thread{};
    thread.pid = thread.tid = sampled_pid;
    thread.tracked = true;
    return thread;
  }
  void on_thread_interval(const ThreadInterval& interval) override {
    if (interval.state == ThreadState::unknown) return;
    std::string text{to_string(interval.state)};
    if (is_blocked(interval.state)) text += " in " + std::string(to_string(interval.syscall));
    intervals_.push_back(text + ' ' + std::to_string((interval.end_ns - interval.begin_ns) / sample_ms));
  }

  ThreadSample sample_{};
  SampledThread thread_{thread(), 7};
  ThreadTracker tracker_{this};
  std::uint64_t last_ns_ = 0;
  std::vector<std::string> intervals_;
};

TEST_F(SampledThreadTest, AThreadThatSleepsThroughoutSleepsOnce) {
  for (int i = 0; i < 3; ++i) waits_in(Syscall::read);
  EXPECT_THAT(intervals(), ElementsAre("sleeping in read 20"));
}

TEST_F(SampledThreadTest, ATurnIsAsLongAsItWasOnACpu) {
  waits_in(Syscall::epoll_wait);
  runs(3);
  sleeps();
  waits_in(Syscall::epoll_wait);
  EXPECT_THAT(intervals(), ElementsAre("sleeping in epoll_wait 7", "on-cpu 3"));
}

TEST_F(SampledThreadTest, ComputingGoesOnBetweenSamples) {
  waits_in(Syscall::select);
  runs(5);
  look();
  runs(10);
  look();
  runs(4);
  sleeps();
  waits_in(Syscall::select);
  EXPECT_THAT(intervals(), ElementsAre("sleeping in select 5", "on-cpu 19", "sleeping in select 6"));
}

TEST_F(SampledThreadTest, UnseenSleepsAreWaitsForEventsOfALoop) {
  waits_in(Syscall::select);
  runs(5);
  look();
  runs(4);
  sleeps(2);
  look();
  EXPECT_THAT(intervals(), ElementsAre("sleeping in select 5", "on-cpu 5", "sleeping in select 6", "on-cpu 4"));
}

TEST_F(SampledThreadTest, UnseenSleepsBetweenTwoOthersAreToo) {
  waits_in(Syscall::select);
  runs(1);
  sleeps();
  waits_in(Syscall::read);
  runs(2);
  sleeps(2);
  waits_in(Syscall::read);
  EXPECT_THAT(intervals(), ElementsAre("sleeping in select 9", "on-cpu 1", "sleeping in read 7", "sleeping in select 0",
                                       "on-cpu 2"));
}

TEST_F(SampledThreadTest, ALateSampleMakesNoLongTurnOfManyShortOnes) {
  waits_in(Syscall::epoll_wait);
  late(85);
  runs(60, 30);
  sleeps(3);  // of two of them nothing else is known
  waits_in(Syscall::epoll_wait);
  EXPECT_THAT(intervals(), ElementsAre("sleeping in epoll_wait 5", "on-cpu 20", "runnable 10",  //
                                       "sleeping in epoll_wait 0", "on-cpu 20", "runnable 10",  //
                                       "sleeping in epoll_wait 0", "on-cpu 19", "runnable 10"));
}

TEST_F(SampledThreadTest, ALongTurnBetweenLateSamplesIsOne) {
  waits_in(Syscall::epoll_wait);
  late(85);
  runs(90);
  sleeps();
  waits_in(Syscall::epoll_wait);
  EXPECT_THAT(intervals(), ElementsAre("sleeping in epoll_wait 5", "on-cpu 90"));
}

TEST_F(SampledThreadTest, UnseenSleepsOfOtherThreadsAreInAnUnknownCall) {
  look();
  runs(4);
  sleeps(2);
  look();
  EXPECT_THAT(intervals(), ElementsAre("sleeping in other 6", "on-cpu 4"));
}

TEST_F(SampledThreadTest, WithoutSystemCallsAnySleepMayBeAWaitForEvents) {
  look({}, Syscall::unknown);
  runs(4);
  sleeps(2);
  look({}, Syscall::unknown);
  EXPECT_THAT(intervals(), ElementsAre("sleeping in unknown 6", "on-cpu 4"));
}

TEST_F(SampledThreadTest, WaitingForACpuIsKnown) {
  look();
  runs(6, 4);
  look();
  look();  // it waits all the time: that is counted when it is over
  EXPECT_THAT(intervals(), ElementsAre("on-cpu 6", "runnable 4", "runnable 10"));
}

TEST_F(SampledThreadTest, ADiskBlocksUninterruptibly) {
  look();
  runs(6);
  sleeps();
  look(LeftState::uninterruptible, Syscall::fsync);
  look(LeftState::uninterruptible, Syscall::fsync);
  EXPECT_THAT(intervals(), ElementsAre("on-cpu 6", "uninterruptible in fsync 14"));
}

/// The counters of a kernel that wraps or resets them.
TEST_F(SampledThreadTest, CountersThatMakeNoSenseDoNoHarm) {
  runs(1'000'000, 1'000'000);
  sleeps(5);
  look();
  runs(UINT64_MAX / sample_ms, UINT64_MAX / sample_ms);
  look();
  runs(1'000'000'000, 1'000'000'000);
  sleeps(UINT64_MAX);
  waits_in(Syscall::select);
  look();
  intervals();
}

class ThreadSamplerTest : public ::testing::Test {
 protected:
  /// By default nobody takes the CPU from it.
  ThreadSampler sampler(const fs::path& proc, ThreadSampler::Clock clock = {}) {
    if (!clock) clock = [this] { return ++clock_ns; };
    return ThreadSampler(
        tasks,
        [this](std::uint16_t index, std::uint64_t, const SchedSwitch& change) {
          records.push_back(std::to_string(index) +
                            (change.next.tracked
                                 ? " enters " + std::to_string(change.next.tid)
                                 : " " + std::to_string(change.prev.tid) + ' ' + std::string(to_string(change.state)) +
                                       " in " + std::string(to_string(change.syscall))));
        },
        proc, std::move(clock));
  }
  void write(std::int32_t pid, const std::string& name, const std::string& text) {
    const fs::path folder = dir / (std::to_string(pid) + "/task/" + std::to_string(pid));
    fs::create_directories(folder);
    std::ofstream(folder / name) << text;
  }
  void write_status(std::int32_t pid, const std::string& state, int sleeps) {
    write(pid, "status",
          "Name:\tState:\\n\nUmask:\t0022\nState:\t" + state + "\nvoluntary_ctxt_switches:\t" + std::to_string(sleeps) +
              "\nnonvoluntary_ctxt_switches:\t3\n");
  }

  TimedTasks tasks;
  TempDir dir;
  std::uint64_t clock_ns = 0;
  std::vector<std::string> records;
};

TEST_F(ThreadSamplerTest, FilesAreReadAgain) {
  write(7, "schedstat", "1000000 2000 5\n");
  write_status(7, "S (sleeping)", 5);
  write(7, "syscall", std::to_string(SYS_pselect6) + " 0x3 0x0 0x0 0x0 0x0 0x0 0x7f 0x7f\n");
  write_status(8, "S (sleeping)", 5);  // nothing else may be read
  ThreadSampler threads = sampler(dir.path());
  EXPECT_FALSE(tasks.next_due_ns());
  threads.add(7);
  threads.add(8);
  tasks.run(1);
  EXPECT_THAT(records, ElementsAre("0 7 sleeping in select", "1 8 sleeping in unknown"));
  EXPECT_EQ(tasks.next_due_ns(), 1 + ThreadSampler::interval_ns);

  records.clear();
  write(7, "schedstat", "1000500 2000 6\n");
  write_status(7, "R (running)", 5);
  write(7, "syscall", "running\n");
  tasks.run(ThreadSampler::interval_ns);
  EXPECT_THAT(records, IsEmpty()) << "it is not time yet";
  tasks.run(1 + ThreadSampler::interval_ns);
  EXPECT_THAT(records, ElementsAre("0 enters 7"));
}

TEST_F(ThreadSamplerTest, WhatWasReadAtDifferentMomentsIsReadAgain) {
  write_status(7, "R (running)", 5);
  int interruptions = 3;
  ThreadSampler threads = sampler(dir.path(), [&] { return clock_ns += interruptions-- > 0 ? 95 * sample_ms : 1; });
  threads.add(7);
  tasks.run(1);
  EXPECT_THAT(records, ElementsAre("0 enters 7"));
  threads.remove(7);
  records.clear();
  interruptions = 100;
  threads.add(7);
  tasks.run(1 + ThreadSampler::interval_ns);
  EXPECT_THAT(records, IsEmpty()) << "the next sample may be better";
  EXPECT_EQ(tasks.next_due_ns(), 1 + 2 * ThreadSampler::interval_ns);
}

TEST_F(ThreadSamplerTest, ThreadsThatEndedAreNotLookedAt) {
  write_status(7, "Z (zombie)", 5);
  write(8, "status", "Name:\tx\n");
  ThreadSampler threads = sampler(dir.path());
  for (const std::int32_t pid : {7, 8, 9}) threads.add(pid);
  EXPECT_TRUE(tasks.next_due_ns());
  tasks.run(1);
  EXPECT_THAT(records, IsEmpty());
  EXPECT_FALSE(tasks.next_due_ns());
}

TEST_F(ThreadSamplerTest, NumbersOfThreadsAreUsedAgain) {
  for (const std::int32_t pid : {7, 8, 9}) write_status(pid, "R (running)", 5);
  ThreadSampler threads = sampler(dir.path());
  threads.add(7);
  threads.add(8);
  threads.remove(7);
  threads.add(9);
  tasks.run(1);
  EXPECT_THAT(records, ElementsAre("1 enters 8", "0 enters 9"));
}

TEST_F(ThreadSamplerTest, AThreadThatRunsIsOnACpu) {
  ThreadSampler threads = sampler("/proc");
  threads.add(::getpid());
  tasks.run(1);
  EXPECT_THAT(records, ElementsAre("0 enters " + std::to_string(::getpid())));
}

}  // namespace
}  // namespace rtev::test
