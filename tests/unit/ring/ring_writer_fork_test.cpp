// SPDX-License-Identifier: MIT
// RingWriter across forks: two processes never write to one ring.
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/unique_fd.hpp"
#include "unit/ring/writer_fixture.hpp"

namespace rtev::test {
namespace {

using Names = std::vector<std::string>;

class RingWriterFork : public WriterTest {
 protected:
  /// Runs `body` in a forked child, which ends by _exit().
  static pid_t fork_child(const std::function<bool()>& body) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::alarm(30);
    ::_exit(body() ? 0 : 1);
  }
  static void expect_success(pid_t child) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  static std::string name_of(pid_t pid) { return std::to_string(pid) + ".events"; }
  static std::string ring_start_of(pid_t pid) { return "lifecycle 0 " + std::to_string(pid); }
  static inline const std::string fork_child_event = "lifecycle 5 0";
};

TEST_F(RingWriterFork, ChildWithoutEventsCreatesNoFile) {
  RingWriter writer = make(small());
  const pid_t child = fork_child([&] {
    const bool is_off = writer.path().empty() && writer.words_written(0) == 0;
    writer.pause();
    writer.resume();
    writer.stop();
    return is_off && writer.domain(0).begin(Phase{1}) == WriteStatus::off;
  });
  expect_success(child);
  EXPECT_EQ(files(), Names{path().filename()});
  EXPECT_EQ(lines_of(path(), 0), Lines{ring_start()}) << "no event of the child";
}

TEST_F(RingWriterFork, FirstEventOfTheChildCreatesItsRing) {
  RingWriter writer = make(small());
  const UserEvent early = add(writer, "early", UserType::unit);
  writer.domain(0).begin(Phase{1});
  const pid_t child = fork_child([&] {
    const bool done = writer.domain(1).write(early) == WriteStatus::written &&
                      writer.domain(1).write(add(writer, "late", UserType::unit)) == WriteStatus::written &&
                      writer.domain(0).begin(Phase{7}) == WriteStatus::written;
    return done && writer.path() == path() && writer.words_written(1) == 3 + 3 + 2 + 2 && writer.words_written(0) == 2;
  });
  writer.domain(0).lifecycle(Lifecycle::fork_parent, child);
  expect_success(child);
  writer.domain(0).begin(Phase{2});
  EXPECT_EQ(lines_of(path(), 0),
            (Lines{ring_start(), "begin 1 0", "lifecycle 4 " + std::to_string(child), "begin 2 0"}));
  EXPECT_EQ(lines_of(path(), 1), Lines{});
  EXPECT_EQ(lines_of(path_of(child), 1),
            (Lines{ring_start_of(child), fork_child_event, "user_unit 0 0", "user_unit 1 0"}));
  EXPECT_EQ(lines_of(path_of(child), 0), Lines{"begin 7 0"});
  CheckedReader reader(path_of(child));
  EXPECT_EQ(reader.reader().user_event_name(early.id), "early");
  EXPECT_EQ(reader.reader().user_event_name(early.id + 1), "late");
  EXPECT_EQ(reader.reader().producer()->name, "librtev");
}

TEST_F(RingWriterFork, EachProcessStopsItsOwnRing) {
  RingWriter writer = make(small());
  expect_success(fork_child([&] {
    writer.domain(0).begin(Phase{1});
    const bool both = files().size() == 2;
    {
      const RingWriter ended = std::move(writer);
    }
    return both && files() == Names{name_of(::getppid())};
  }));
  EXPECT_EQ(files(), Names{path().filename()});
  EXPECT_EQ(writer.domain(0).begin(Phase{1}), WriteStatus::written);
}

TEST_F(RingWriterFork, ChildOutlivesItsParent) {
  const pid_t parent = fork_child([&] {
    int ends[2];
    if (::pipe(ends) != 0) return false;
    RingWriter writer = make(small());
    const pid_t child = fork_child([&] {
      ::close(ends[1]);
      char none = 0;
      if (::read(ends[0], &none, 1) != 0 || !files().empty()) return false;
      return writer.domain(0).begin(Phase{1}) == WriteStatus::written && files() == Names{name_of(::getpid())};
    });
    ::close(ends[0]);
    writer.stop();
    ::close(ends[1]);
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
  });
  expect_success(parent);
}

TEST_F(RingWriterFork, GrandchildOfAChildWithoutEventsHasItsRing) {
  RingWriter writer = make(small());
  expect_success(fork_child([&] {
    const pid_t grandchild = fork_child([&] { return writer.domain(0).begin(Phase{1}) == WriteStatus::written; });
    int status = -1;
    return ::waitpid(grandchild, &status, 0) == grandchild && status == 0 &&
           lines_of(path_of(grandchild), 0) == Lines{ring_start_of(grandchild), fork_child_event, "begin 1 0"};
  }));
}

TEST_F(RingWriterFork, ChildOfAPausedWriterIsPaused) {
  RingWriter writer = make(small());
  writer.pause();
  const pid_t child = fork_child([&] {
    const bool off = writer.domain(0).begin(Phase{1}) == WriteStatus::off && files().size() == 1;
    writer.resume();
    return off && writer.domain(0).begin(Phase{2}) == WriteStatus::written;
  });
  expect_success(child);
  EXPECT_EQ(lines_of(path_of(child), 0), (Lines{ring_start_of(child), fork_child_event, "begin 2 0"}));
  EXPECT_EQ(writer.domain(0).begin(Phase{1}), WriteStatus::off) << "the parent is still paused";
}

TEST_F(RingWriterFork, ForkBeforeTheStartAndAfterTheStop) {
  auto options = small();
  options.start = false;
  RingWriter writer = make(options);
  const pid_t child = fork_child([&] {
    return writer.domain(0).begin(Phase{1}) == WriteStatus::off && writer.start() &&
           writer.domain(0).begin(Phase{2}) == WriteStatus::written;
  });
  expect_success(child);
  EXPECT_EQ(lines_of(path_of(child), 0), (Lines{ring_start_of(child), "begin 2 0"}))
      << "its ring begins with ring_start";
  ASSERT_TRUE(writer.start());
  writer.stop();
  expect_success(fork_child([&] { return writer.domain(0).begin(Phase{1}) == WriteStatus::off && !writer.start(); }));
}

TEST_F(RingWriterFork, ChildThatCannotCreateItsRingIsOff) {
  auto options = small();
  options.directory = dir_ / "gone";
  std::filesystem::create_directory(options.directory);
  RingWriter writer = make(options);
  std::filesystem::remove_all(options.directory);
  expect_success(fork_child([&] {
    const auto first = writer.domain(0).begin(Phase{1});
    std::filesystem::create_directory(options.directory);
    return first == WriteStatus::off && writer.domain(0).begin(Phase{1}) == WriteStatus::off &&
           std::filesystem::is_empty(options.directory);
  }));
  EXPECT_EQ(writer.domain(0).begin(Phase{1}), WriteStatus::written);
}

TEST_F(RingWriterFork, ForkWhileOtherThreadsWrite) {
  auto options = timed();
  options.domains = 3;
  RingWriter writer = make(options);
  std::atomic<bool> done = false;
  std::vector<std::jthread> threads;
  for (std::uint32_t domain = 1; domain < 3; ++domain) {
    threads.emplace_back([&, domain] {
      DomainWriter events = writer.domain(domain);
      for (int i = 0; !done; ++i) {
        events.counter(Counter{1}, 1);
        if (i % 64 == 0) add(writer, std::to_string(domain), UserType::unit);
      }
    });
  }
  for (int round = 0; round < 30; ++round) {
    const pid_t child = fork_child([&] {
      bool written = true;
      for (std::uint32_t domain = 0; domain < 3; ++domain) {
        for (int i = 0; i < 50; ++i) written &= writer.domain(domain).begin(Phase{1}) == WriteStatus::written;
      }
      return written && writer.words_written(0) == 6 + 100 && writer.words_written(1) == 100;
    });
    expect_success(child);
    CheckedReader reader(path_of(child));
    EXPECT_EQ(reader.poll().events, 2u + 150);
    EXPECT_EQ(reader.words().corrupt, 0u);
    std::filesystem::remove(path_of(child));
  }
  done = true;
  threads.clear();
  CheckedReader reader(path());
  reader.poll();
  EXPECT_EQ(reader.words().corrupt, 0u);
  for (std::uint32_t domain = 0; domain < 3; ++domain)
    EXPECT_EQ(reader.reader().accounting(static_cast<std::uint16_t>(domain)).written, writer.words_written(domain));
}

TEST_F(RingWriterFork, SpawnedProgramsDoNotInheritIt) {
  RingWriter writer = make(small());
  writer.domain(0).begin(Phase{1});
  char program[] = "true";
  char* const arguments[] = {program, nullptr};
  pid_t child = -1;
  ASSERT_EQ(::posix_spawnp(&child, program, nullptr, nullptr, arguments, environ), 0);
  expect_success(child);
  child = ::vfork();
  if (child == 0) {
    ::execvp(program, arguments);
    ::_exit(127);
  }
  expect_success(child);
  writer.domain(0).begin(Phase{2});
  EXPECT_EQ(lines_of(path(), 0), (Lines{ring_start(), "begin 1 0", "begin 2 0"}));
  EXPECT_EQ(files(), Names{path().filename()});
}

TEST_F(RingWriterFork, ForkByTheSystemCallKeepsTheParentsRing) {
  RingWriter writer = make(small());
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    writer.stop();
    ::_exit(0);
  }
  expect_success(child);
  EXPECT_EQ(files(), Names{path().filename()});
  EXPECT_EQ(lines_of(path(), 0), Lines{ring_start()});
  EXPECT_EQ(writer.domain(0).begin(Phase{1}), WriteStatus::written);
}

}  // namespace
}  // namespace rtev::test
