// SPDX-License-Identifier: MIT
// The BPF programs on the running kernel: scheduler records. Without OCaml: the tests act as the traced processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/clock.hpp"
#include "live/kernel_fixture.hpp"

// The linker defines these for each section whose name is a C identifier.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
extern const char __start_backup_code[], __stop_backup_code[], __start_tick_code[], __stop_tick_code[];
}
// NOLINTEND(bugprone-reserved-identifier)

namespace rtev::kernel {
namespace {

TEST_F(KernelLive, SwitchesAndWakeupsOfATrackedProcess) {
  Programs programs = start({.sched = RTEV_SCHED_OCAML});
  Pipe questions, answers;
  Child child{[&] {
    questions.out.reset();
    answer(questions, answers);
  }};
  const auto pid = static_cast<unsigned>(child.pid());
  child.release();
  questions.put();
  answers.get();
  ASSERT_TRUE(wait_until_asleep(child.pid()));
  ASSERT_TRUE(programs.track(child.pid(), {}));
  constexpr int rounds = 100;
  for (int i = 0; i < rounds; ++i) {
    questions.put();
    answers.get();
  }
  // One record at a time: stopping must neither lose nor repeat a record. A process counts as asleep a moment before it
  // leaves its cpu, so its last switch may arrive late.
  Records records;
  std::size_t partial_reads = 0;
  const auto left_last = [&] {
    std::ranges::sort(records.sched, {}, &rtev_sched::time_ns);
    const auto is_switch = [](const rtev_sched& record) { return record.type == RTEV_SWITCH; };
    const auto last = std::find_if(records.sched.rbegin(), records.sched.rend(), is_switch);
    return last != records.sched.rend() && last->prev.tgid == pid;
  };
  ASSERT_TRUE(wait_until_asleep(child.pid()));
  const auto deadline = Clock::now() + test_timeout;
  do {
    while (!read(programs, records, 1)) ++partial_reads;
    ASSERT_LT(Clock::now(), deadline);
  } while (!left_last());
  EXPECT_GT(partial_reads, 100U);

  std::optional<bool> running;
  int enters = 0, wakeups = 0;
  for (const auto& record : records.sched) {
    ASSERT_TRUE(record.prev.tgid == pid || record.next.tgid == pid) << "only the tracked process";
    if (record.type == RTEV_WAKEUP) {
      ASSERT_EQ(record.next.tgid, pid);
      ++wakeups;
    } else if (record.next.tgid == pid) {
      EXPECT_FALSE(running.value_or(false)) << "enters and leaves alternate";
      EXPECT_EQ(record.next.role, RTEV_ROLE_MUTATOR);
      EXPECT_EQ(record.next.flags, RTEV_TRACKED_THREAD);
      running = true;
      ++enters;
    } else {
      EXPECT_TRUE(running.value_or(true)) << "enters and leaves alternate";
      EXPECT_EQ(record.prev.domain, -1) << "no variables are known";
      EXPECT_EQ(record.prev.prio, 120);
      running = false;
    }
  }
  EXPECT_GE(enters, 1);
  EXPECT_GE(wakeups, 1);
  EXPECT_THAT(programs.drops(), testing::Each(0U));
}

bool becomes_readable(int fd, Clock::duration timeout) {
  pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count())) > 0;
}

bool looked_and_ran(Programs& programs, std::uint32_t slot) {
  programs.look_at_cpus();
  return programs.take_activity(slot).ran;
}

/// Waits until a process that went to sleep shows no activity. The switch itself may be seen half-way once.
bool wait_until_quiet(Programs& programs, std::uint32_t slot) {
  const auto deadline = Clock::now() + test_timeout;
  for (int quiet = 0; quiet < 3; quiet = looked_and_ran(programs, slot) ? 0 : quiet + 1)
    if (Clock::now() > deadline) return false;
  return true;
}

TEST_F(KernelLive, RunsWithoutSwitchesWhileOnACpu) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  constexpr std::uint32_t slot = 6;
  rtev_tracked tracked{};
  tracked.slot = slot;
  ASSERT_TRUE(programs.track(::getpid(), tracked));
  // This thread is of the process that it asks about, so the process is on a cpu from its first switch on.
  const auto deadline = Clock::now() + test_timeout;
  while (!programs.take_activity(slot).ran) {
    ASSERT_LT(Clock::now(), deadline);
    std::this_thread::yield();
  }
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(looked_and_ran(programs, slot));
  programs.untrack(::getpid());
}

TEST_F(KernelLive, ActivityIsSeenAndWakesTheReader) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  Pipe questions, answers;
  Child child{[&] {
    questions.out.reset();
    answer(questions, answers);
  }};
  // A process that is running when it is tracked shows no activity until its next switch.
  ASSERT_TRUE(wait_until_asleep(child.pid()));
  constexpr std::uint32_t slot = 5;
  rtev_tracked tracked{};
  tracked.slot = slot;
  ASSERT_TRUE(programs.track(child.pid(), tracked));
  EXPECT_TRUE(programs.take_activity(0).ran) << "not watched";
  EXPECT_TRUE(programs.take_activity(RTEV_RING_SLOTS).ran);
  EXPECT_FALSE(programs.take_activity(slot + 1).ran);
  child.release();
  questions.put();
  answers.get();
  EXPECT_TRUE(programs.take_activity(slot).ran);

  ASSERT_TRUE(wait_until_asleep(child.pid()));
  ASSERT_TRUE(wait_until_quiet(programs, slot));
  programs.wake_if_full();
  questions.put();
  answers.get();
  EXPECT_FALSE(becomes_readable(programs.wakeup_fd(), Clock::duration::zero())) << "nothing is full";
  ASSERT_TRUE(wait_until_asleep(child.pid()));
  ASSERT_TRUE(wait_until_quiet(programs, slot));
  programs.wake_if_active();
  EXPECT_FALSE(looked_and_ran(programs, slot));
  questions.put();
  answers.get();
  EXPECT_TRUE(becomes_readable(programs.wakeup_fd(), test_timeout));
  EXPECT_TRUE(looked_and_ran(programs, slot));
  questions.put();
  answers.get();
  EXPECT_FALSE(becomes_readable(programs.wakeup_fd(), Clock::duration::zero())) << "asked for once, woken once";
}

TEST_F(KernelLive, FullBuffersCountWhatTheyDrop) {
  Programs programs = start({.sched = RTEV_SCHED_ALL, .sched_buffer_bytes = 0});
  ASSERT_GE(programs.sched_buffers(), 1);
  Pipe questions, answers;
  Child child{[&] {
    questions.out.reset();
    answer(questions, answers);
  }};
  child.release();
  const auto deadline = Clock::now() + test_timeout;
  while (programs.drops()[RTEV_STAT_SWITCH_DROPPED] == 0 || programs.drops()[RTEV_STAT_WAKEUP_DROPPED] == 0) {
    ASSERT_LT(Clock::now(), deadline);
    questions.put();
    answers.get();
    programs.take_sched_drops(monotonic_ns());
  }
  pollfd wait{.fd = programs.sched_fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&wait, 1, 0), 1) << "a buffer that is filling up wakes its reader";
  Records records;
  read(programs, records);
  EXPECT_GE(records.sched.size(), 65'536U / 96 - 1) << "the records that fit are there";
}

// Thread-local variables as in OCaml's runtime.
struct FakeDomain {
  int id;
  int padding;
};
thread_local FakeDomain* domain_self;
thread_local void* caml_state;

// Loops with one thread each, told apart by the return address on its stack.
struct Loop {
  Pipe gate;
  char byte = 0;
  std::atomic<pid_t> tid = 0;
};
/// Sleeps directly below the loop, as the runtime does. By syscall(2): sanitizers insert large frames for read().
[[gnu::always_inline]] inline bool sleep_in(Loop& loop) {
  return ::syscall(SYS_read, loop.gate.in.get(), &loop.byte, 1) == 1;
}
[[gnu::noinline, gnu::section("backup_code")]] bool backup_loop(Loop& loop) {
  while (sleep_in(loop)) {
  }
  return loop.tid != 0;
}
[[gnu::noinline, gnu::section("tick_code")]] bool tick_loop(Loop& loop) {
  while (sleep_in(loop)) {
  }
  return loop.tid == 0;
}
[[gnu::noinline]] bool mutator_loop(Loop& loop) {
  while (sleep_in(loop)) {
  }
  return loop.tid > 0;
}

std::uint64_t address_of(const char* code) {
  return reinterpret_cast<std::uintptr_t>(code);
}
template <typename T>
std::int64_t offset_from_thread_pointer(const T& variable) {
  return reinterpret_cast<const char*>(&variable) - static_cast<const char*>(__builtin_thread_pointer());
}

TEST_F(KernelLive, AForkedChildInheritsTrackingButNoRing) {
  Programs programs = start({.sched = RTEV_SCHED_OCAML});
  constexpr int id = 41;
  Pipe questions, answers;
  Child parent{[&] {
    questions.out.reset();
    FakeDomain domain{.id = id, .padding = 0};
    domain_self = &domain;  // the child has a copy in the same place
    if (const pid_t child = ::fork(); child == 0)
      answer(questions, answers);
    else
      ::waitpid(child, nullptr, 0);
  }};
  constexpr std::uint32_t slot = 5;
  rtev_tracked tracked{};
  tracked.domain_self_tls = offset_from_thread_pointer(domain_self);
  tracked.slot = slot;
  ASSERT_TRUE(programs.track(parent.pid(), tracked));
  const auto ask = [&] {
    questions.put();
    answers.get();
  };
  parent.release();
  ask();
  ASSERT_TRUE(wait_until_asleep(parent.pid()));
  ASSERT_TRUE(wait_until_quiet(programs, slot));
  for (int i = 0; i < 10; ++i) ask();
  EXPECT_FALSE(looked_and_ran(programs, slot)) << "the ring is the parent's";

  Records records;
  read(programs, records);
  const auto forks = records.of(RTEV_FORK, parent.pid());
  ASSERT_EQ(forks.size(), 1U);
  EXPECT_TRUE(read_until(programs, records, [&] {
    return std::ranges::any_of(records.sched, [&](const rtev_sched& record) {
      return record.type == RTEV_SWITCH && record.prev.tgid == forks[0].peer && record.prev.domain == id;
    });
  }));
}

TEST_F(KernelLive, RingsThatFillUpWakeTheReader) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  struct Indices {
    std::atomic<std::uint64_t> head, tail;
  };
  constexpr int domain_id = 3;
  static Indices indices[domain_id + 1]{};
  Pipe answers;
  Child child{[&] {
    FakeDomain domain{.id = domain_id, .padding = 0};
    domain_self = &domain;
    // Never leaves its cpu by itself.
    const auto end = Clock::now() + std::chrono::milliseconds(100);
    while (Clock::now() < end) ++indices[domain_id].tail;
    answers.put();
  }};
  constexpr std::uint32_t slot = 5, part_shift = 10;
  rtev_tracked tracked{};
  tracked.domain_self_tls = offset_from_thread_pointer(domain_self);
  tracked.slot = slot;
  tracked.ring_indices = reinterpret_cast<std::uintptr_t>(indices);
  tracked.ring_stride = sizeof(Indices);
  tracked.ring_part_shift = part_shift;
  ASSERT_TRUE(programs.track(child.pid(), tracked));
  programs.wake_if_full();
  child.release();
  EXPECT_TRUE(becomes_readable(programs.wakeup_fd(), test_timeout));
  EXPECT_FALSE(becomes_readable(answers.in.get(), Clock::duration::zero())) << "before the thread leaves its cpu";
  const RingActivity activity = programs.take_activity(slot);
  EXPECT_TRUE(activity.ran);
  EXPECT_TRUE(activity.checked);
  EXPECT_TRUE(activity.fills_up);
  answers.get();
}

TEST_F(KernelLive, RingsFillUpWithTheSecondPartSinceTheyWereRead) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  struct Indices {
    std::atomic<std::uint64_t> head, tail;
  };
  constexpr std::uint32_t slot = 6, part_shift = 10;
  static Indices indices{};
  Pipe questions, answers;
  Child child{[&] {
    FakeDomain domain{.id = 0, .padding = 0};
    domain_self = &domain;
    while (questions.get()) {
      indices.tail += 1 << part_shift;
      answers.put();
    }
  }};
  rtev_tracked tracked{};
  tracked.domain_self_tls = offset_from_thread_pointer(domain_self);
  tracked.slot = slot;
  tracked.ring_indices = reinterpret_cast<std::uintptr_t>(&indices);
  tracked.ring_stride = sizeof(Indices);
  tracked.ring_part_shift = part_shift;
  ASSERT_TRUE(programs.track(child.pid(), tracked));
  child.release();
  const auto fills_up = [&] {
    questions.put();
    answers.get();
    EXPECT_TRUE(wait_until_asleep(child.pid()));
    return programs.take_activity(slot).fills_up;
  };
  EXPECT_FALSE(fills_up());
  EXPECT_TRUE(fills_up());
  EXPECT_TRUE(fills_up()) << "it was not read";
  programs.begin_read(slot);
  EXPECT_FALSE(fills_up());
  EXPECT_TRUE(fills_up());
}

TEST_F(KernelLive, ThreadThatEndsWhileDetachedFreesItsTid) {
  Programs programs = start({.sched = RTEV_SCHED_OCAML});
  constexpr int id = 42, rounds = 10;
  Records records;
  const auto domains_of = [&](pid_t tid) {
    std::vector<int> found;
    for (const auto& record : std::exchange(records.sched, {})) {
      for (const auto& side : {record.prev, record.next})
        if (record.type == RTEV_SWITCH && side.tid == static_cast<unsigned>(tid)) found.push_back(side.domain);
    }
    return found;
  };
  pid_t pid = 0;
  {
    Pipe questions, answers;
    Child child{[&] {
      FakeDomain domain{.id = id, .padding = 0};
      domain_self = &domain;
      questions.out.reset();
      answer(questions, answers);
    }};
    pid = child.pid();
    questions.in.reset();
    rtev_tracked tracked{};
    tracked.domain_self_tls = offset_from_thread_pointer(domain_self);
    ASSERT_TRUE(programs.track(pid, tracked));
    child.release();
    for (int i = 0; i < rounds; ++i) {
      questions.put();
      answers.get();
    }
    read(programs, records);
    EXPECT_THAT(domains_of(pid), testing::Contains(id));

    programs.untrack(pid);
    programs.detach_sched();
    questions.out.reset();
    child.wait();
  }
  Child next{[] {}, [&] { return fork_as(pid); }};
  ASSERT_EQ(next.pid(), pid);
  ASSERT_TRUE(wait_until_asleep(pid));
  ASSERT_TRUE(programs.track(pid, {}));
  read(programs, records);
  EXPECT_THAT(domains_of(pid), testing::IsEmpty()) << "detached";
  ASSERT_TRUE(programs.attach_sched());
  next.release();
  next.wait();
  read(programs, records);
  EXPECT_THAT(domains_of(pid), testing::AllOf(testing::Not(testing::IsEmpty()), testing::Each(-1)));
}

TEST_F(KernelLive, ExecByAThreadFreesItsTid) {
  Programs programs = start({.sched = RTEV_SCHED_OCAML});
  constexpr int id = 41, rounds = 10;
  Pipe questions, answers;
  Child child{[&] {
    std::jthread{[&] {
      FakeDomain domain{.id = id, .padding = 0};
      domain_self = &domain;
      for (int i = 0; i < rounds && questions.get(); ++i) answers.put();
      ::execl("/bin/sleep", "sleep", "infinity", nullptr);
    }}.join();
  }};
  rtev_tracked tracked{};
  tracked.domain_self_tls = offset_from_thread_pointer(domain_self);
  ASSERT_TRUE(programs.track(child.pid(), tracked));
  child.release();
  for (int i = 0; i < rounds; ++i) {
    questions.put();
    answers.get();
  }
  Records records;
  ASSERT_TRUE(read_until(programs, records, [&] { return !records.of(RTEV_EXEC, child.pid()).empty(); }));
  const auto thread = static_cast<pid_t>(records.of(RTEV_EXEC, child.pid())[0].detail);
  ASSERT_GT(thread, 0);
  const auto switches_of = [&](pid_t tgid) {
    std::vector<rtev_thread> found;
    for (const auto& record : records.sched)
      for (const auto& side : {record.prev, record.next})
        if (record.type == RTEV_SWITCH && side.tgid == static_cast<unsigned>(tgid) &&
            side.tid == static_cast<unsigned>(thread))
          found.push_back(side);
    return found;
  };
  EXPECT_THAT(switches_of(child.pid()), testing::Contains(testing::Field(&rtev_thread::domain, id)));

  Child next{[] {}, [&] { return fork_as(thread); }};
  ASSERT_EQ(next.pid(), thread);
  ASSERT_TRUE(wait_until_asleep(next.pid()));
  ASSERT_TRUE(programs.track(next.pid(), {}));
  next.release();
  next.wait();
  ASSERT_TRUE(read_until(programs, records, [&] { return !switches_of(thread).empty(); }));
  EXPECT_THAT(switches_of(thread), testing::Each(testing::Field(&rtev_thread::domain, -1)));
}

TEST_F(KernelLive, ThreadsHaveTheirDomainRoleAndLock) {
  Programs programs = start({.sched = RTEV_SCHED_OCAML});
  rtev_tracked tracked{};
  tracked.domain_self_tls = offset_from_thread_pointer(domain_self);
  tracked.caml_state_tls = offset_from_thread_pointer(caml_state);
  const std::array<std::pair<bool (*)(Loop&), rtev_role>, 3> kinds{
      {{backup_loop, RTEV_ROLE_BACKUP}, {tick_loop, RTEV_ROLE_TICK}, {mutator_loop, RTEV_ROLE_MUTATOR}}};
  tracked.backup_begin = address_of(__start_backup_code);
  tracked.backup_end = address_of(__stop_backup_code);
  tracked.tick_begin = address_of(__start_tick_code);
  tracked.tick_end = address_of(__stop_tick_code);
  ASSERT_TRUE(programs.track(::getpid(), tracked));

  std::array<Loop, 3> loops;
  std::vector<std::jthread> threads;
  threads.reserve(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i)
    threads.emplace_back([&, i] {
      FakeDomain domain{.id = static_cast<int>(40 + i), .padding = 0};
      domain_self = &domain;
      caml_state = &domain;
      loops[i].tid = ::gettid();
      kinds[i].first(loops[i]);
    });
  // Each thread sleeps many times, as those of the runtime do.
  Records records;
  const auto last_seen = [&](std::size_t i) {
    rtev_thread seen{};
    for (const auto& record : records.sched)
      if (record.type == RTEV_SWITCH && record.prev.tid == static_cast<unsigned>(loops[i].tid)) seen = record.prev;
    return seen;
  };
  EXPECT_TRUE(read_until(programs, records, [&] {
    for (auto& loop : loops) loop.gate.put();
    return std::ranges::all_of(std::array{0U, 1U, 2U},
                               [&](std::size_t i) { return last_seen(i).role == kinds[i].second; });
  }));
  for (auto& loop : loops) loop.gate.out.reset();
  threads.clear();
  programs.untrack(::getpid());

  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto seen = last_seen(i);
    EXPECT_EQ(seen.role, kinds[i].second);
    EXPECT_EQ(seen.domain, static_cast<int>(40 + i));
    const bool holds = (seen.flags & RTEV_HOLDS_LOCK) != 0;
    EXPECT_EQ(holds, kinds[i].second == RTEV_ROLE_MUTATOR) << "the runtime's own threads hold it only briefly";
  }
}

}  // namespace
}  // namespace rtev::kernel
