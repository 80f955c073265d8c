// SPDX-License-Identifier: MIT
#include "session/command/sudo_user.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string_view>

namespace rtev::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* unknown_uid = "3999999999";  // in nobody's /etc/passwd

class SudoUserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root was called by sudo";
    for (const char* name : {"SUDO_UID", "SUDO_GID", "SUDO_USER", "HOME", "USER", "LOGNAME"})
      if (const char* value = std::getenv(name)) before_[name] = value;
    set_caller(nullptr, nullptr, nullptr);
  }
  void TearDown() override {
    for (const char* name : {"SUDO_UID", "SUDO_GID", "SUDO_USER", "HOME", "USER", "LOGNAME"}) ::unsetenv(name);
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }

  static void set(const char* name, const char* value) {
    if (value != nullptr) {
      ::setenv(name, value, 1);
    } else {
      ::unsetenv(name);
    }
  }
  static void set_caller(const char* uid, const char* gid, const char* user) {
    set("SUDO_UID", uid);
    set("SUDO_GID", gid);
    set("SUDO_USER", user);
  }

 private:
  std::map<std::string, std::string> before_;
};

TEST_F(SudoUserTest, IsEmptyWithoutSudoOrForRoot) {
  EXPECT_FALSE(SudoUser::of_environment());
  EXPECT_TRUE(check_sudo_environment());
  set_caller("0", "0", "root");
  EXPECT_FALSE(SudoUser::of_environment());
  EXPECT_TRUE(check_sudo_environment());
}

TEST_F(SudoUserTest, RefusesHalfOfTheNumbers) {
  set_caller("65534", nullptr, "nobody");
  ASSERT_FALSE(check_sudo_environment());
  EXPECT_EQ(check_sudo_environment().error().subject, "SUDO_GID");
  set_caller(nullptr, "65534", "nobody");
  ASSERT_FALSE(check_sudo_environment());
  EXPECT_EQ(check_sudo_environment().error().subject, "SUDO_UID");
}

TEST_F(SudoUserTest, RefusesInvalidNumbers) {
  for (const char* id : {"", "abc", "12x", "-1", " 12", "4294967295", "4294967296", "+5", "\x1b[31m"}) {
    for (const bool is_uid : {true, false}) {
      set_caller(is_uid ? id : "65534", is_uid ? "65534" : id, "nobody");
      EXPECT_FALSE(SudoUser::of_environment()) << id;
      const auto checked = check_sudo_environment();
      ASSERT_FALSE(checked) << id;
      EXPECT_EQ(checked.error().subject, is_uid ? "SUDO_UID" : "SUDO_GID");
      EXPECT_NE(checked.error().hint, "");
      EXPECT_THAT(checked.error().why, Not(HasSubstr("\x1b")));
    }
  }
  set_caller("65534", "65534", "nobody");
  EXPECT_TRUE(check_sudo_environment());
}

TEST_F(SudoUserTest, TakesNameAndHomeFromPasswd) {
  set_caller("65534", "65534", "somebody else");
  const auto user = SudoUser::of_environment();
  ASSERT_TRUE(user);
  EXPECT_EQ(user->uid, 65534u);
  EXPECT_EQ(user->name, "nobody");
  EXPECT_FALSE(user->home.empty());
  EXPECT_THAT(user->groups, Contains(65534u));
}

TEST_F(SudoUserTest, UnknownUserKeepsTheNameFromSudo) {
  set_caller(unknown_uid, "54321", "ldap-user");
  const auto user = SudoUser::of_environment();
  ASSERT_TRUE(user);
  EXPECT_EQ(user->name, "ldap-user");
  EXPECT_EQ(user->home, "");
  EXPECT_THAT(user->groups, ElementsAre(54321u));
}

/// What a process is after become(), checked where it happens: in a process of its own. The exit status counts what is
/// wrong.
int become_and_check(const SudoUser& user, std::string_view home) {
  int wrong = user.become() ? 0 : 100;
  const char* const found_home = std::getenv("HOME");
  wrong += ::getuid() != user.uid || ::geteuid() != user.uid;
  wrong += ::getgid() != user.gid || ::getegid() != user.gid;
  wrong += ::getgroups(0, nullptr) != static_cast<int>(user.groups.size());
  wrong += std::getenv("USER") != user.name || std::getenv("LOGNAME") != user.name;
  wrong += home.empty() ? found_home != nullptr : found_home == nullptr || found_home != home;
  wrong += ::setuid(0) == 0;  // for good
  return wrong;
}

TEST_F(SudoUserTest, BecomesTheUserPermanently) {
  ::setenv("HOME", "/root", 1);
  const SudoUser known{.uid = 65534, .gid = 65533, .name = "nobody", .home = "/some/home", .groups = {65533, 65532}};
  EXPECT_EXIT(::_exit(become_and_check(known, "/some/home")), ::testing::ExitedWithCode(0), "");
  const SudoUser unknown{.uid = 3999999999, .gid = 65533, .name = "ldap-user", .home = {}, .groups = {65533}};
  EXPECT_EXIT(::_exit(become_and_check(unknown, "")), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace rtev::test
