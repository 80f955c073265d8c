// SPDX-License-Identifier: MIT
// The BPF programs on the running kernel: sums of what threads use in place of switches. Without OCaml: a child acts as
// the traced process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "live/kernel_fixture.hpp"

namespace rtev::kernel {
namespace {

/// As caml_state: not null while the thread holds its domain's lock.
thread_local void* held_lock;

/// A tracked process that works and sleeps, each time it is asked to.
class KernelUsage : public KernelLive {
 protected:
  /// Of so many sleeps. One whose wake-up comes before the thread has left its CPU has no records: it goes on.
  static constexpr int at_least(int sleeps) { return sleeps * 4 / 5; }

  struct Usage {
    std::uint64_t cpu_ns = 0, delays = 0, last_ns = 0;
  };

  void SetUp() override {
    KernelLive::SetUp();
    if (IsSkipped()) return;
    rtev_tracked tracked{};
    tracked.caml_state_tls = reinterpret_cast<const char*>(&held_lock) - static_cast<char*>(__builtin_thread_pointer());
    ASSERT_TRUE(programs.track(child.pid(), tracked));
    child.release();
  }
  void work() {
    questions.out.reset();
    for (char order = 0; ::read(questions.in.get(), &order, 1) == 1; answers.put()) {
      held_lock = order == 'h' ? static_cast<void*>(this) : nullptr;
      const auto end = Clock::now() + std::chrono::microseconds(50);
      while (Clock::now() < end) continue;
    }
  }
  /// 'h': it holds the lock while it sleeps the next time; else any other character.
  void ask(char order) {
    ASSERT_EQ(::write(questions.out.get(), &order, 1), 1);
    ASSERT_TRUE(answers.get());
    ASSERT_TRUE(wait_until_asleep(child.pid()));
  }
  Usage usage() const {
    Usage all;
    for (const rtev_sched& record : records.sched) {
      if (record.type != RTEV_USAGE) continue;
      const auto part = std::bit_cast<rtev_usage>(record);
      EXPECT_EQ(part.tgid, static_cast<unsigned>(child_pid));
      EXPECT_EQ(part.role, RTEV_ROLE_MUTATOR);
      EXPECT_LE(part.delay_count, RTEV_USAGE_DELAYS);
      all.cpu_ns += part.cpu_ns;
      all.delays += part.delay_count;
      all.last_ns = std::max<std::uint64_t>(all.last_ns, part.time_ns);
    }
    return all;
  }
  std::ptrdiff_t switches_and_wakeups() const {
    return std::ranges::count_if(records.sched, [](const rtev_sched& record) { return record.type != RTEV_USAGE; });
  }

  Programs programs = start({.sched = RTEV_SCHED_SUMS});
  Pipe questions, answers;
  Child child{[this] { work(); }};
  pid_t child_pid = child.pid();
  Records records;
};

TEST_F(KernelUsage, TakesThePlaceOfSwitchesWithoutTheLock) {
  constexpr int rounds = 200;
  for (int i = 0; i < 3; ++i) ask('n');
  read(programs, records);
  EXPECT_GT(switches_and_wakeups(), 0) << "the first one says which domain the thread runs";
  const std::uint64_t delays_before = usage().delays;
  records.sched.clear();
  for (int i = 0; i < rounds; ++i) ask('n');
  read(programs, records);
  EXPECT_EQ(switches_and_wakeups(), 0);

  questions.out.reset();
  rusage used{};
  child.wait(&used);
  ASSERT_TRUE(read_until(programs, records, [&] { return !records.of(RTEV_EXIT, child_pid).empty(); }));
  read(programs, records);
  const Usage seen = usage();
  // All sleeps but those of the first rounds; the last usage is that of the end.
  EXPECT_GE(seen.delays + delays_before, static_cast<std::uint64_t>(at_least(rounds)));
  const auto ns = [](const timeval& time) { return time.tv_sec * 1'000'000'000LL + time.tv_usec * 1'000LL; };
  const auto cpu_ns = static_cast<std::uint64_t>(ns(used.ru_utime) + ns(used.ru_stime));
  EXPECT_GE(seen.cpu_ns, std::uint64_t{rounds} * 50'000);
  EXPECT_LE(seen.cpu_ns, cpu_ns + 20'000'000) << "the kernel counts by ticks where it has no better clock";
  EXPECT_LE(seen.last_ns, records.of(RTEV_EXIT, child_pid)[0].time_ns);
}

TEST_F(KernelUsage, LeavesSwitchesOfThreadsThatHoldTheLock) {
  constexpr int rounds = 50;
  for (int i = 0; i < 3; ++i) ask('n');
  read(programs, records);
  records.sched.clear();
  for (int i = 0; i < rounds; ++i) ask('h');
  read(programs, records);
  const auto leaves = std::ranges::count_if(records.sched, [&](const rtev_sched& record) {
    return record.type == RTEV_SWITCH && record.prev.tid == static_cast<unsigned>(child_pid) &&
           (record.prev.flags & RTEV_HOLDS_LOCK) != 0;
  });
  EXPECT_GE(leaves, at_least(rounds));
  const auto comes_back = [&](std::uint32_t type) {
    return std::ranges::count_if(records.sched, [&](const rtev_sched& record) {
      return record.type == type && record.next.tid == static_cast<unsigned>(child_pid);
    });
  };
  EXPECT_GE(comes_back(RTEV_SWITCH), at_least(rounds));
  EXPECT_GE(comes_back(RTEV_WAKEUP), at_least(rounds));
}

TEST_F(KernelUsage, OfAThreadThatNeverSleepsIsReportedMeanwhile) {
  Child busy{[] {
    held_lock = nullptr;
    while (true) continue;
  }};
  ASSERT_TRUE(programs.track(busy.pid(), {}));
  busy.release();
  EXPECT_TRUE(read_until(programs, records, [&] {
    return std::ranges::any_of(records.sched, [&](const rtev_sched& record) {
      const auto part = std::bit_cast<rtev_usage>(record);
      return record.type == RTEV_USAGE && part.tgid == static_cast<unsigned>(busy.pid()) && part.cpu_ns > 100'000'000;
    });
  }));
}

}  // namespace
}  // namespace rtev::kernel
