// SPDX-License-Identifier: MIT
// The BPF programs on the running kernel: processes and rings. Without OCaml: the tests act as the traced processes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

#include "inspect/file_place.hpp"
#include "live/kernel_fixture.hpp"
#include "support/temp_dir.hpp"

namespace rtev::kernel {
namespace {

void become(const char* program) {
  ::execl(program, program, nullptr);
}

TEST_F(KernelLive, FollowedChildExecsAndExits) {
  Programs programs = start({.sched = RTEV_SCHED_OFF, .follow = true});
  EXPECT_EQ(programs.sched_buffers(), 0);
  Child good{[] { become("/bin/true"); }}, bad{[] { become("/bin/false"); }}, stranger{[] { become("/bin/true"); }};
  ASSERT_TRUE(programs.follow(good.pid()));
  ASSERT_TRUE(programs.follow(bad.pid()));
  const pid_t good_pid = good.pid(), bad_pid = bad.pid();
  stranger.release();
  stranger.wait();
  good.release();
  bad.release();

  Records records;
  ASSERT_TRUE(read_until(programs, records, [&] {
    return !records.of(RTEV_EXIT, good_pid).empty() && !records.of(RTEV_EXIT, bad_pid).empty();
  }));
  EXPECT_EQ(good.wait(), 0);
  EXPECT_EQ(bad.wait(), 1 << 8);

  const auto execs = records.of(RTEV_EXEC, good_pid), exits = records.of(RTEV_EXIT, good_pid);
  ASSERT_EQ(execs.size(), 1U);
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_STREQ(execs[0].comm, "true");
  EXPECT_EQ(execs[0].detail, 0U) << "the leader itself called exec";
  EXPECT_EQ(execs[0].start_time, exits[0].start_time);
  EXPECT_LT(execs[0].time_ns, exits[0].time_ns);
  EXPECT_EQ(exits[0].detail, 0U);
  EXPECT_EQ(records.of(RTEV_EXIT, bad_pid).at(0).detail, 1U << 8);
  for (const auto& record : records.lifecycle) {
    EXPECT_EQ(record.flags, RTEV_FOLLOWED);
    EXPECT_THAT(record.tgid, testing::AnyOf(good_pid, bad_pid)) << "no other process is reported";
  }
}

TEST_F(KernelLive, DescendantsAreFollowedFromTheirFirstInstruction) {
  Programs programs = start({.sched = RTEV_SCHED_OFF, .follow = true});
  Child shell{[] { ::execl("/bin/sh", "sh", "-c", "(/bin/false; /bin/true); exit 5", nullptr); }};
  const pid_t pid = shell.pid();
  ASSERT_TRUE(programs.follow(pid));
  shell.release();
  Records records;
  ASSERT_TRUE(read_until(programs, records, [&] { return !records.of(RTEV_EXIT, pid).empty(); }));
  EXPECT_EQ(records.of(RTEV_EXIT, pid).at(0).detail, 5U << 8);

  // Every child of the shell and of its children is reported from fork to exit.
  std::size_t children = 0, failures = 0;
  for (const auto& fork : records.lifecycle) {
    if (fork.type != RTEV_FORK) continue;
    ++children;
    const auto exits = records.of(RTEV_EXIT, static_cast<pid_t>(fork.peer));
    ASSERT_EQ(exits.size(), 1U) << fork.peer;
    EXPECT_EQ(exits[0].start_time, fork.start_time);
    EXPECT_GT(exits[0].time_ns, fork.time_ns);
    failures += exits[0].detail == 1U << 8;
  }
  EXPECT_GE(children, 2U);
  EXPECT_EQ(failures, 1U);
}

TEST_F(KernelLive, AKilledProcessExitsOnceWithItsSignal) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  for (int round = 0; round < 20; ++round) {
    // Several threads end at the same time: each may find that it is the last.
    Child child{[] {
      std::vector<std::thread> threads;
      constexpr int count = 8;
      threads.reserve(count);
      for (int i = 0; i < count; ++i) threads.emplace_back([] { ::pause(); });
      ::kill(::getpid(), SIGKILL);
    }};
    const pid_t pid = child.pid();
    ASSERT_TRUE(programs.track(pid, {}));
    child.release();
    EXPECT_EQ(child.wait(), SIGKILL);
    Records records;
    read(programs, records);
    const auto exits = records.of(RTEV_EXIT, pid);
    ASSERT_EQ(exits.size(), 1U);
    EXPECT_EQ(exits[0].detail, static_cast<unsigned>(SIGKILL));
  }
}

TEST_F(KernelLive, AReusedPidInheritsNothing) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  const pid_t pid = Child{[] {}}.pid();
  rtev_tracked stale{};
  stale.slot = 9;
  Records records;
  const auto exits_of_next = [&] {
    EXPECT_TRUE(programs.track(pid, stale));
    Child next{[] {}, [&] { return fork_as(pid); }};
    EXPECT_EQ(next.pid(), pid);
    next.release();
    next.wait();
    records = {};
    read(programs, records);
    return records.of(RTEV_EXIT, pid).size();
  };
  EXPECT_EQ(exits_of_next(), 0U) << "the parent is not tracked, so the child is not";
  EXPECT_FALSE(programs.take_activity(stale.slot).ran);
  ASSERT_TRUE(programs.track(::getpid(), {}));
  EXPECT_EQ(exits_of_next(), 1U);
  EXPECT_FALSE(programs.take_activity(stale.slot).ran) << "only the parent's entry is inherited";
}

TEST_F(KernelLive, FullMapsAreCounted) {
  // Only followed processes, so that other processes of the host do not count.
  Programs programs = start({.sched = RTEV_SCHED_OFF, .follow = true});
  const auto make_child = [] {
    if (const pid_t pid = ::fork(); pid == 0)
      ::_exit(0);
    else
      ::waitpid(pid, nullptr, 0);
  };
  Child first{make_child}, second{make_child};
  for (const pid_t pid : {first.pid(), second.pid()}) {
    ASSERT_TRUE(programs.follow(pid));
    ASSERT_TRUE(programs.track(pid, {}));
  }
  const auto untracked = [&] { return programs.drops()[RTEV_STAT_UNTRACKED]; };
  const auto let_end = [](Child& child) {
    child.release();
    child.wait();
  };
  EXPECT_EQ(untracked(), 0U);

  constexpr pid_t no_process = 1 << 22;  // pids are below this
  pid_t pid = no_process;
  while (programs.track(pid, {})) ++pid;
  EXPECT_EQ(pid - no_process, RTEV_MAX_TRACKED - 2);
  EXPECT_EQ(untracked(), 1U) << "the one that did not fit";
  let_end(first);
  EXPECT_EQ(untracked(), 2U) << "the child";

  // The exit of the first child made room for one tracked process.
  pid = no_process;
  while (programs.follow(pid)) ++pid;
  let_end(second);
  EXPECT_EQ(untracked(), 3U) << "the child that could not be followed";
}

TEST_F(KernelLive, ForkOfATrackedProcessIsReportedAndExecEndsTracking) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  Child child{[] {
    if (const pid_t grandchild = ::fork(); grandchild == 0)
      ::_exit(0);
    else
      ::waitpid(grandchild, nullptr, 0);
    // Not tracked after exec, so the forks of the shell are not reported.
    ::execl("/bin/sh", "sh", "-c", "(exit 3); exec /bin/true", nullptr);
  }};
  const pid_t pid = child.pid();
  ASSERT_TRUE(programs.track(pid, {}));
  child.release();
  child.wait();
  Records records;
  const auto execs = [&] { return records.of(RTEV_EXEC, pid).size(); };
  ASSERT_TRUE(read_until(programs, records, [&] { return execs() == 2; }));
  const auto forks = records.of(RTEV_FORK, pid);
  ASSERT_EQ(forks.size(), 1U);
  EXPECT_NE(forks[0].start_time, records.of(RTEV_EXEC, pid)[0].start_time) << "the child's";
  EXPECT_TRUE(records.of(RTEV_EXIT, pid).empty());
}

TEST_F(KernelLive, ARingIsAnnouncedAndOtherMappingsAreNot) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  const test::TempDir directory;
  const auto map = [&](const std::filesystem::path& name, int flags, std::size_t length) {
    const UniqueFd file{::open((directory / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(length)), 0);
    void* const at = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, flags, file.get(), 0);
    ASSERT_NE(at, MAP_FAILED);
    ::munmap(at, length);
  };
  map("12.events", MAP_PRIVATE, 1 << 20);
  map("x.events", MAP_SHARED, 1 << 20);
  map("12.event", MAP_SHARED, 1 << 20);
  map(".events", MAP_SHARED, 1 << 20);
  map("13.events", MAP_PRIVATE, 1 << 20);
  const UniqueFd read_only{::open((directory / "13.events").c_str(), O_RDONLY | O_CLOEXEC)};
  EXPECT_EQ(::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, read_only.get(), 0), MAP_FAILED);
  map("12.events", MAP_SHARED, 68'167'744);
  Records records;
  const auto rings = [&] { return records.of(RTEV_RING, ::getpid()); };
  ASSERT_TRUE(read_until(programs, records, [&] { return !rings().empty(); }));
  ASSERT_EQ(rings().size(), 1U);
  EXPECT_EQ(rings()[0].detail, 68'167'744U) << "as requested, without padding";
  EXPECT_EQ(rings()[0].tid, static_cast<unsigned>(::gettid()));
}

TEST_F(KernelLive, AnAnnouncedRingHasThePathsOfItsFiles) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  const test::TempDir directory;
  std::filesystem::path deep = directory.path(), deepest;
  for (int i = 0; i < 8; ++i) deep /= std::string(200, static_cast<char>('a' + i)) + "\n \\";
  for (deepest = directory.path(); std::distance(deepest.begin(), deepest.end()) < 70;) deepest /= "d";
  const std::filesystem::path folders[] = {directory.path(), deep, deepest};
  for (const auto& folder : folders) {
    std::filesystem::create_directories(folder);
    const UniqueFd file{::open((folder / "12.events").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
    void* const at = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    ASSERT_NE(at, MAP_FAILED);
    ::munmap(at, 4096);
  }
  Records records;
  ASSERT_TRUE(read_until(programs, records, [&] { return records.ring_tails.size() >= std::size(folders); }));
  ASSERT_EQ(records.ring_tails.size(), std::size(folders));
  const Procfs procfs;
  for (std::size_t i = 0; i < std::size(folders); ++i) {
    const RingRecordFiles places = parse_ring_record(records.ring_tails[i]);
    ASSERT_TRUE(places.program);
    EXPECT_EQ(places.clock_offset_ns, 0);
    const auto program = open_by_place(procfs, *places.program);
    ASSERT_TRUE(program) << program.error().message();
    EXPECT_EQ(program->path, std::filesystem::read_symlink("/proc/self/exe"));
    EXPECT_EQ(places.ring.has_value(), folders[i] != deepest) << "too many names";
    if (!places.ring) continue;
    const auto ring = open_by_place(procfs, *places.ring);
    ASSERT_TRUE(ring) << ring.error().message();
    EXPECT_EQ(ring->path, folders[i] / "12.events");
  }
}

}  // namespace
}  // namespace rtev::kernel
