// SPDX-License-Identifier: MIT
// The guardian gives each user a share of the programs that it pauses at the end, and its end is seen. It pauses them
// when the tracer ends, and puts a hook back when it is taken away from a process.
#include "enable/guardian.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <deque>
#include <fstream>
#include <functional>
#include <optional>
#include <utility>

#include "support/poll_until.hpp"
#include "unit/enable/child.hpp"

namespace rtev::enable {
namespace {

constexpr rlim_t descriptors = 64;
constexpr int places = descriptors / 2;

/// A limit cannot be raised again without CAP_SYS_RESOURCE: in a process of its own.
void with_few_descriptors(const std::function<void()>& test) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const rlimit few{.rlim_cur = descriptors, .rlim_max = descriptors};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    test();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

/// Has the guardian keep programs of a user, until it has no place for another one. Their number.
int keep_all(Guardian& guardian, uid_t user) {
  std::deque<Child> children;
  while (children.size() < places) {
    const Child& child = children.emplace_back([user] {
      EXPECT_EQ(::setresuid(user, user, user), 0);
      ::prctl(PR_SET_DUMPABLE, 1);
    });
    auto process = HeldProcess::hold(child.pid(), 0);
    if (!process || guardian.keep({.process = std::move(*process)}) != true) break;
  }
  return static_cast<int>(children.size()) - 1;
}

/// The process that was forked last.
pid_t youngest_child() {
  pid_t youngest = 0;
  std::ifstream children("/proc/thread-self/children");
  for (pid_t child = 0; children >> child;) youngest = child;
  return youngest;
}

TEST(GuardianTest, AUserHasHalfOfThePlacesThatOthersLeave) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  with_few_descriptors([] {
    auto guardian = Guardian::start();
    EXPECT_TRUE(guardian);
    EXPECT_EQ(keep_all(*guardian, 1001), places / 2);
    EXPECT_EQ(keep_all(*guardian, 1002), places / 4);
    EXPECT_GE(keep_all(*guardian, 1003), 1);
  });
}

TEST(GuardianTest, IsSeenToBeGone) {
  auto guardian = Guardian::start();
  ASSERT_TRUE(guardian);
  const auto is_gone = [&guardian](int timeout_ms) {
    pollfd end{.fd = guardian->end_fd(), .events = 0, .revents = 0};
    return ::poll(&end, 1, timeout_ms) != 0;
  };
  EXPECT_FALSE(is_gone(0));
  const pid_t pid = youngest_child();
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  constexpr int timeout_ms = 10'000;
  EXPECT_TRUE(is_gone(timeout_ms));
  ::waitpid(pid, nullptr, 0);
}

/// A guardian that keeps this process as a program whose events are on.
class KeepingGuardianTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t window_ns = 60'000'000'000;

  void SetUp() override {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    own_end_ = UniqueFd(ends[0]);
    tracer_ = UniqueFd(ends[1]);
    auto guardian = Guardian::start();
    ASSERT_TRUE(guardian) << guardian.error().message();
    guardian_.emplace(std::move(*guardian));
    pid_ = youngest_child();
    auto process = HeldProcess::hold(::getpid(), 0);
    ASSERT_TRUE(process && process->may_write());
    program_.emplace(Target{.process = std::move(*process)});
    program_->runtime.start_sites.enabled_flag = reinterpret_cast<std::uint64_t>(&enabled_);
    program_->runtime.paused_flag = reinterpret_cast<std::uint64_t>(&paused_);
  }
  void TearDown() override { end_guardian(); }
  /// Closes this process's side, and returns when the guardian has done what it had to.
  void end_guardian() {
    guardian_.reset();
    if (pid_ > 0) ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  bool is_paused_soon() const {
    return test::poll_until([this] { return paused_ == 1; });
  }
  ReplacedHook replaced() {
    hook_ = 2;
    return {.address = reinterpret_cast<std::uint64_t>(&hook_), .original = 1, .replacement = 2};
  }

  UniqueFd own_end_, tracer_;
  std::optional<Guardian> guardian_;
  pid_t pid_ = 0;
  std::optional<Target> program_;
  alignas(8) std::atomic<std::uint64_t> enabled_ = 1, paused_ = 0, hook_ = 1;
};

TEST_F(KeepingGuardianTest, PausesEventsWhenThisProcessEnds) {
  ASSERT_EQ(guardian_->keep(*program_), true);
  end_guardian();
  EXPECT_EQ(paused_, 1u);
}

TEST_F(KeepingGuardianTest, PausesEventsWhenTheTracerEnds) {
  ASSERT_TRUE(guardian_->watch(own_end_.get()));
  ASSERT_EQ(guardian_->keep(*program_), true);
  EXPECT_EQ(paused_, 0u);
  tracer_.reset();
  EXPECT_TRUE(is_paused_soon());
  paused_ = 0;
  ASSERT_EQ(guardian_->keep(*program_), true);
  EXPECT_EQ(paused_, 1u) << "its events came on after that";
}

TEST_F(KeepingGuardianTest, PausesEventsWhenTheSocketIsShutDown) {
  ASSERT_TRUE(guardian_->watch(own_end_.get()));
  ASSERT_EQ(guardian_->keep(*program_), true);
  ::shutdown(tracer_.get(), SHUT_WR);
  EXPECT_TRUE(is_paused_soon());
}

TEST_F(KeepingGuardianTest, PausesEventsThatComeOnAfterTheEnd) {
  enabled_ = 0;
  ASSERT_EQ(guardian_->keep(*program_), true);
  guardian_.reset();
  enabled_ = 1;
  EXPECT_TRUE(is_paused_soon());
}

TEST_F(KeepingGuardianTest, PausesNothingOfProgramsThatAreLeftOn) {
  ASSERT_TRUE(guardian_->watch(own_end_.get()));
  ASSERT_EQ(guardian_->keep(*program_), true);
  EXPECT_TRUE(guardian_->leave());
  tracer_.reset();
  end_guardian();
  EXPECT_EQ(paused_, 0u);
}

TEST_F(KeepingGuardianTest, PutsTheHookBackWhenItIsTakenAway) {
  ASSERT_TRUE(guardian_->hold(program_->memory(), replaced(), window_ns));
  EXPECT_TRUE(guardian_->renew());
  EXPECT_EQ(hook_, 1u);
  EXPECT_FALSE(guardian_->let_go()) << "it holds nothing any more";
  hook_ = 2;
  end_guardian();
  EXPECT_EQ(hook_, 2u) << "it is not the hook of the next process";
}

TEST_F(KeepingGuardianTest, KeepsItsProgramsWhenItIsTakenAway) {
  ASSERT_EQ(guardian_->keep(*program_), true);
  EXPECT_TRUE(guardian_->renew());
  EXPECT_EQ(paused_, 0u);
  end_guardian();
  EXPECT_EQ(paused_, 1u);
}

TEST_F(KeepingGuardianTest, EndsWhenItIsTakenAwayAndClosedOnlyThere) {
  // A worker that was killed while a copy of its side hangs somewhere.
  const Child worker([] {});
  ASSERT_EQ(guardian_->keep(*program_), true);
  EXPECT_TRUE(guardian_->renew());
  end_guardian();
  EXPECT_EQ(paused_, 1u);
}

}  // namespace
}  // namespace rtev::enable
