// SPDX-License-Identifier: MIT
// What is done with the rights of a program is done with no others, and its user cannot disturb it.
#include "enable/as_program.hpp"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>

#include "support/answered_call.hpp"
#include "support/temp_dir.hpp"

namespace rtev::enable {
namespace {

using test::answer_call;

class AsProgramTest : public ::testing::Test {
 protected:
  static constexpr uid_t user = 12345;
  static constexpr gid_t group = 12346, second_group = 12347;

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "takes root";
    ASSERT_EQ(::chmod(dir_.path().c_str(), 0777), 0);
    std::ofstream(dir_ / "of-root") << "x";
    ASSERT_EQ(::chmod((dir_ / "of-root").c_str(), 0600), 0);
    std::ofstream(dir_ / "of-group") << "x";
    ASSERT_EQ(::chown((dir_ / "of-group").c_str(), 0, second_group), 0);
    ASSERT_EQ(::chmod((dir_ / "of-group").c_str(), 0640), 0);
  }
  /// What happens as a program of this user; nothing if there is no answer.
  template <typename Test>
  static std::optional<bool> as_program(const Test& test, std::uint64_t capabilities = 0, std::uint64_t space = 0) {
    auto answer = run_in_child(user, {}, [&] {
      bool is_true = become({.user = user,
                             .group = group,
                             .groups = {second_group},
                             .capabilities = capabilities,
                             .user_namespace = space}) &&
                     test();
      helper::Message message;
      helper::Writer{message}(is_true);
      return message;
    });
    if (!answer) return std::nullopt;
    bool is_true = false;
    helper::Reader reader(*answer);
    reader(is_true);
    return is_true;
  }
  bool can_open(const char* name) const {
    return UniqueFd(::open((dir_ / name).c_str(), O_RDONLY | O_CLOEXEC)).get() >= 0;
  }

  test::TempDir dir_;
};

TEST_F(AsProgramTest, FilesAreOfItsUser) {
  EXPECT_EQ(as_program([this] {
              return UniqueFd(::open((dir_ / "made").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)).get() >=
                     0;
            }),
            true);
  struct stat status{};
  ASSERT_EQ(::stat((dir_ / "made").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, user);
  EXPECT_EQ(status.st_gid, group);
}

TEST_F(AsProgramTest, OnlyItsUsersFilesAreOpened) {
  EXPECT_EQ(as_program([this] { return can_open("of-group"); }), true);
  EXPECT_EQ(as_program([this] { return can_open("of-root"); }), false);
}

TEST_F(AsProgramTest, WhatMayOpenAllFilesOpensAllFiles) {
  constexpr std::uint64_t overrides = 1ull << CAP_DAC_OVERRIDE;
  struct stat own{};
  ASSERT_EQ(::stat("/proc/self/ns/user", &own), 0);
  const auto opens = [this] { return can_open("of-root"); };
  EXPECT_EQ(as_program(opens, overrides, own.st_ino), true);
  EXPECT_EQ(as_program(opens, ~overrides, own.st_ino), false);
  EXPECT_EQ(as_program(opens, overrides, own.st_ino + 1), false) << "it may do so only in its own user namespace";
}

TEST_F(AsProgramTest, OtherCapabilitiesAreGone) {
  struct stat own{};
  ASSERT_EQ(::stat("/proc/self/ns/user", &own), 0);
  EXPECT_EQ(as_program([this] { return ::chown((dir_ / "of-root").c_str(), user, user) == 0; }, ~0ull, own.st_ino),
            false);
}

TEST_F(AsProgramTest, RightsDoNotComeBack) {
  EXPECT_EQ(as_program([] { return ::setresuid(0, 0, 0) == 0 && ::setgroups(0, nullptr) == 0; }), false);
}

TEST_F(AsProgramTest, ItsUserCannotSignalIt) {
  EXPECT_EQ(as_program([] {
              // A signal takes one of the first two ids of its target: see kill(2).
              std::array<uid_t, 3> ids{1, 1, 1};
              return ::getresuid(ids.data(), &ids[1], &ids[2]) == 0 && ids == std::array<uid_t, 3>{0, 0, 0};
            }),
            true);
}

TEST(RunInChildTest, HasOnlyTheDescriptorsThatAreKept) {
  const UniqueFd kept(::open("/dev/null", O_RDONLY | O_CLOEXEC)), other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  auto answer = run_in_child(0, {kept.get()}, [&] {
    bool is_kept = ::fcntl(kept.get(), F_GETFD) >= 0, is_closed = ::fcntl(other.get(), F_GETFD) < 0;
    helper::Message message;
    helper::Writer{message}(is_kept, is_closed);
    return message;
  });
  ASSERT_TRUE(answer);
  bool is_kept = false, is_closed = false;
  helper::Reader reader(*answer);
  reader(is_kept, is_closed);
  EXPECT_TRUE(is_kept);
  EXPECT_TRUE(is_closed);
}

TEST(RunInChildTest, HasNoAnswerOfWorkThatTakesTooLong) {
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd open_until_its_end(ends[0]);
  UniqueFd of_child(ends[1]);
  const int before = unanswered_children();
  const auto answer = run_in_child(0, {of_child.get()}, []() -> helper::Message {
    while (true) ::pause();
  });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), NoAnswer::late);
  EXPECT_EQ(unanswered_children(), before + 1);
  of_child.reset();
  char byte = 0;
  EXPECT_EQ(::read(open_until_its_end.get(), &byte, 1), 0) << "it does not stay";
}

TEST(RunInChildTest, DoesNotStayIfItsParentIsKilledBeforeItBegins) {
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd open_until_its_end(ends[0]);
  UniqueFd of_children(ends[1]);
  const pid_t parent = ::fork();
  if (parent == 0) {
    answer_call(SYS_pidfd_open, SECCOMP_RET_KILL_PROCESS);
    run_in_child(0, {}, [] { return helper::Message(); });
    ::_exit(0);
  }
  of_children.reset();
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_EQ(WTERMSIG(status), SIGSYS);
  pollfd ended{.fd = open_until_its_end.get(), .events = 0, .revents = 0};
  constexpr int timeout_ms = 10'000;
  EXPECT_EQ(::poll(&ended, 1, timeout_ms), 1) << "it waits for a parent that has ended";
}

TEST(RunInChildTest, HasNoAnswerOfWorkThatEnds) {
  const auto answer = run_in_child(0, {}, []() -> helper::Message { ::_exit(0); });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), NoAnswer::failed);
}

/// Run in a process of its own: whether the work is not done, and the user not charged.
bool fails_without(std::uint32_t call) {
  const pid_t process = ::fork();
  if (process == 0) {
    answer_call(call, SECCOMP_RET_ERRNO | EMFILE);
    const int before = unanswered_children();
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) ::_exit(1);
    const auto answer = run_in_child(0, {ends[1]}, [&] {
      [[maybe_unused]] const auto written = ::write(ends[1], "x", 1);
      return helper::Message();
    });
    ::close(ends[1]);
    pollfd ended{.fd = ends[0], .events = POLLIN, .revents = 0};
    char byte = 0;
    const bool is_done = ::poll(&ended, 1, -1) != 1 || ::read(ends[0], &byte, 1) != 0;
    const bool has_failed = !answer && answer.error() == NoAnswer::failed && unanswered_children() == before;
    ::_exit(has_failed && !is_done ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(process, &status, 0) == process && status == 0;
}

TEST(RunInChildTest, FailsIfThereIsNoProcessOrNothingHoldsIt) {
  EXPECT_TRUE(fails_without(SYS_pidfd_open));
  EXPECT_TRUE(fails_without(SYS_clone));
}

}  // namespace
}  // namespace rtev::enable
