// SPDX-License-Identifier: MIT
// A process that is held: it ends, runs another program or changes its rights before something is done to it.
#include "enable/held_process.hpp"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <memory>

#include "base/capabilities.hpp"
#include "unit/enable/child.hpp"

namespace rtev::enable {
namespace {

using ::testing::HasSubstr;

HeldProcess hold(pid_t pid) {
  auto held = HeldProcess::hold(pid, 0);
  EXPECT_TRUE(held) << held.error().why;
  return std::move(*held);
}

class HeldProcessTest : public ::testing::Test {
 protected:
  static constexpr uid_t other_user = 12345;

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "changes its user, which takes root";
  }
  static void expect_refused_after(
      const std::function<void()>& change, const std::string& why, const std::function<void()>& first = [] {}) {
    Child child(first, change);
    const HeldProcess held = hold(child.pid());
    EXPECT_TRUE(held.may_write()) << held.may_write().error().why;
    EXPECT_TRUE(held.check_unchanged());
    child.go_on();
    const auto unchanged = held.check_unchanged();
    ASSERT_FALSE(unchanged);
    EXPECT_EQ(unchanged.error().result, EnableResult::privileged);
    EXPECT_THAT(unchanged.error().why, HasSubstr(why));
  }
};

TEST_F(HeldProcessTest, ThatStaysTheSameMayBeWritten) {
  const Child child([] {});
  const HeldProcess held = hold(child.pid());
  EXPECT_TRUE(held.may_write());
  EXPECT_TRUE(held.check_unchanged());
  EXPECT_EQ(held.credentials().user, ::getuid());
}

TEST_F(HeldProcessTest, MayChangeItsRootDirectory) {
  Child child([] {}, [] { ASSERT_EQ(::chroot("/proc"), 0); });
  const HeldProcess held = hold(child.pid());
  EXPECT_TRUE(held.has_its_root());
  child.go_on();
  EXPECT_FALSE(held.has_its_root());
}

TEST_F(HeldProcessTest, MayLeaveItsMountNamespace) {
  Child child([] {}, [] { ASSERT_EQ(::unshare(CLONE_NEWNS), 0); });
  const HeldProcess held = hold(child.pid());
  EXPECT_TRUE(held.has_its_mounts());
  child.go_on();
  EXPECT_FALSE(held.has_its_mounts());
  EXPECT_TRUE(held.has_its_root()) << "it looks the same";
}

TEST_F(HeldProcessTest, HasTheIdsOfItsUser) {
  const Child child([] {
    ASSERT_EQ(::setresgid(other_user, other_user, other_user), 0);
    ASSERT_EQ(::setresuid(other_user, other_user, other_user), 0);
    ::prctl(PR_SET_DUMPABLE, 1);
  });
  const HeldProcess held = hold(child.pid());
  EXPECT_TRUE(held.may_write()) << held.may_write().error().why;
  EXPECT_EQ(held.credentials().user, other_user);
  EXPECT_EQ(held.credentials().group, other_user);
}

TEST_F(HeldProcessTest, ThatHasEndedIsGone) {
  auto child = std::make_unique<Child>([] {});
  const HeldProcess held = hold(child->pid());
  const pid_t pid = child->pid();
  child.reset();
  const auto unchanged = held.check_unchanged();
  ASSERT_FALSE(unchanged);
  EXPECT_EQ(unchanged.error().result, EnableResult::gone);
  EXPECT_FALSE(held.memory().is_alive());
  EXPECT_FALSE(held.read("status"));
  EXPECT_FALSE(HeldProcess::hold(pid, 0));
}

TEST_F(HeldProcessTest, OfAnotherStartTimeIsAnother) {
  const Child child([] {});
  const HeldProcess held = hold(child.pid());
  EXPECT_TRUE(HeldProcess::hold(child.pid(), held.start_ticks()));
  EXPECT_FALSE(HeldProcess::hold(child.pid(), held.start_ticks() + 1));
}

TEST_F(HeldProcessTest, ThatExecutesAnotherProgramIsRefused) {
  Child child([] {}, [] { ::execl("/bin/sleep", "sleep", "60", nullptr); });
  const HeldProcess held = hold(child.pid());
  child.go_on();
  const auto unchanged = held.check_unchanged();
  ASSERT_FALSE(unchanged);
  EXPECT_EQ(unchanged.error().result, EnableResult::gone);
  EXPECT_FALSE(held.memory().is_alive());
}

TEST_F(HeldProcessTest, ThatExecutesItsOwnProgramAgainHasAnotherMemory) {
  Child child([] {},
              [] { ::execl("/proc/self/exe", "unit-tests", "--gtest_list_tests", "--gtest_filter=None", nullptr); });
  const HeldProcess held = hold(child.pid());
  child.go_on();
  EXPECT_FALSE(held.check_unchanged());
  EXPECT_FALSE(held.memory().is_alive());
}

TEST_F(HeldProcessTest, ThatChangesItsUserIsRefused) {
  expect_refused_after(
      [] {
        ::setresuid(other_user, other_user, other_user);
        ::prctl(PR_SET_DUMPABLE, 1);
      },
      "changed");
}

TEST_F(HeldProcessTest, ThatChangesItsGroupIsRefused) {
  expect_refused_after(
      [] {
        ::setresgid(other_user, other_user, other_user);
        ::prctl(PR_SET_DUMPABLE, 1);
      },
      "changed");
}

TEST_F(HeldProcessTest, ThatChangesItsOtherGroupsIsRefused) {
  expect_refused_after([] { ::setgroups(1, &other_user); }, "changed");
}

TEST_F(HeldProcessTest, ThatDropsACapabilityIsRefused) {
  expect_refused_after([] { keep_capabilities({CAP_SYS_PTRACE}); }, "changed");
}

TEST_F(HeldProcessTest, ThatEntersAnotherUserNamespaceIsRefused) {
  expect_refused_after(
      [] {
        ::unshare(CLONE_NEWUSER);
        ::prctl(PR_SET_DUMPABLE, 1);
      },
      "");
}

TEST_F(HeldProcessTest, WhoseMemoryItsUserMayNotReadAnyMoreIsRefused) {
  const auto become_user = [] {
    ::setresgid(other_user, other_user, other_user);
    ::setresuid(other_user, other_user, other_user);
    ::prctl(PR_SET_DUMPABLE, 1);
  };
  expect_refused_after([] { ::prctl(PR_SET_DUMPABLE, 0); }, "not dumpable", become_user);
}

TEST_F(HeldProcessTest, ThatCouldUseACapabilityIsRefused) {
  const Child child([] {
    ::prctl(PR_SET_KEEPCAPS, 1);
    ::setresgid(other_user, other_user, other_user);
    ::setresuid(other_user, other_user, other_user);
    ::prctl(PR_SET_DUMPABLE, 1);
  });
  const HeldProcess held = hold(child.pid());
  ASSERT_FALSE(held.may_write());
  EXPECT_THAT(held.may_write().error().why, HasSubstr("capabilities that its user has not"));
}

TEST_F(HeldProcessTest, WithTheRightsOfTwoUsersIsRefused) {
  const Child child([] { ::setresuid(other_user, 0, 0); });
  const HeldProcess held = hold(child.pid());
  ASSERT_FALSE(held.may_write());
  EXPECT_THAT(held.may_write().error().why, HasSubstr("several users"));
}

TEST_F(HeldProcessTest, WithTheRightsOfTwoGroupsIsRefused) {
  const Child child([] { ::setresgid(other_user, 0, 0); });
  ASSERT_FALSE(hold(child.pid()).may_write());
}

TEST_F(HeldProcessTest, WhoseUserMayNotReadItsMemoryIsRefused) {
  const Child child([] {
    ::setresgid(other_user, other_user, other_user);
    ::setresuid(other_user, other_user, other_user);
    ::prctl(PR_SET_DUMPABLE, 0);
  });
  const HeldProcess held = hold(child.pid());
  ASSERT_FALSE(held.may_write());
  EXPECT_THAT(held.may_write().error().why, HasSubstr("not dumpable"));
}

}  // namespace
}  // namespace rtev::enable
