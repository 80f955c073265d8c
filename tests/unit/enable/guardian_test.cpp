// SPDX-License-Identifier: MIT
// The guardian gives each user a share of the programs that it pauses at the end, and its end is seen.
#include "enable/guardian.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <fstream>
#include <functional>
#include <utility>

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
  pid_t youngest = 0;
  std::ifstream children("/proc/thread-self/children");
  for (pid_t child = 0; children >> child;) youngest = child;
  ASSERT_GT(youngest, 0);
  ::kill(youngest, SIGKILL);
  constexpr int timeout_ms = 10'000;
  EXPECT_TRUE(is_gone(timeout_ms));
}

}  // namespace
}  // namespace rtev::enable
