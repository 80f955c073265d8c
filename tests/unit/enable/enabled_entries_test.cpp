// SPDX-License-Identifier: MIT
// Entries of enabled programs: who may read them, and when they go.
#include "enable/enabled_entries.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/subordinate_users.hpp"
#include "inspect/enabled_list.hpp"
#include "unit/enable/child.hpp"
#include "unit/enable/own_mounts.hpp"

namespace rtev::enable {
namespace {

class EnabledEntriesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!may_mount()) GTEST_SKIP() << "takes a /run of its own";
  }
  /// Tracers of this host have entries in its /run.
  void with_own_run(const std::function<void()>& test) {
    with_own_mounts([&] {
      ASSERT_TRUE(mount_memory("/run"));
      child_.emplace([] {});
      test();
      child_.reset();
    });
  }
  static HeldProcess hold(const Child& child) { return std::move(*HeldProcess::hold(child.pid(), 0)); }
  static void note(const HeldProcess& process, Enabled enabled) {
    const auto noted = note_enabled(process.pid(), process.start_ticks(), {.enabled = enabled, .place = 0x1000});
    ASSERT_TRUE(noted) << noted.error().message();
  }
  static void await_end(const EnabledEntries& entries) {
    constexpr int timeout_ms = 10'000;
    pollfd ended{.fd = entries.event_fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&ended, 1, timeout_ms), 1);
  }

  Procfs procfs_;
  std::optional<Child> child_;
};

TEST_F(EnabledEntriesTest, GoWithTheirProcess) {
  with_own_run([&] {
    EnabledEntries entries(procfs_, 8);
    const HeldProcess process = hold(*child_);
    note(process, Enabled::on);
    entries.add(process);
    entries.remove_ended();
    EXPECT_EQ(enabled_by_us(process.pid(), process.start_ticks()), Enabled::on);
    child_.reset();
    await_end(entries);
    entries.remove_ended();
    EXPECT_FALSE(last_enabled_note(process.pid(), process.start_ticks()));
  });
}

TEST_F(EnabledEntriesTest, OfEarlierRunsGoToo) {
  with_own_run([&] {
    const HeldProcess process = hold(*child_);
    note(process, Enabled::off);
    EnabledEntries entries(procfs_, 8);
    EXPECT_TRUE(last_enabled_note(process.pid(), process.start_ticks()));
    child_.reset();
    await_end(entries);
    entries.remove_ended();
    EXPECT_FALSE(last_enabled_note(process.pid(), process.start_ticks()));
  });
}

TEST_F(EnabledEntriesTest, AreForRootOnly) {
  with_own_run([&] {
    const HeldProcess process = hold(*child_);
    note(process, Enabled::on);
    struct stat status{};
    const std::string path = std::string(enabled_directory) + "/" + std::to_string(process.pid()) + "-" +
                             std::to_string(process.start_ticks());
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777u, 0600u);
    Child other([] {},
                [&] {
                  ::setresuid(12345, 12345, 12345);
                  if (enabled_by_us(process.pid(), process.start_ticks())) ::_exit(1);
                });
    other.go_on();
    EXPECT_TRUE(procfs_.stat(other.pid()) && !procfs_.stat(other.pid())->ending) << "another user sees too much";
    forget_enabled(process.pid(), process.start_ticks());
  });
}

TEST_F(EnabledEntriesTest, WhatAnotherRunIsWritingStays) {
  with_own_run([&] {
    const auto written_by = [](pid_t pid) { return std::string(enabled_directory) + "/new-" + std::to_string(pid); };
    note(hold(*child_), Enabled::off);  // so that the directory is there
    const std::string entry = written_by(child_->pid());
    std::ofstream{entry};
    const EnabledEntries entries(procfs_, 8);
    EXPECT_EQ(::access(entry.c_str(), F_OK), 0);
    child_.reset();
    const EnabledEntries later(procfs_, 8);
    EXPECT_NE(::access(entry.c_str(), F_OK), 0);
  });
}

TEST_F(EnabledEntriesTest, AUserHasHalfOfThePlacesThatOthersLeave) {
  with_own_run([&] {
    EnabledEntries entries(procfs_, 4);
    const Child second([] {});
    const std::uint32_t user = charged_user(::getuid()), other = user + 1;
    for (const Child* child : {&std::as_const(*child_), &second}) {
      EXPECT_TRUE(entries.has_place_for(user));
      entries.add(hold(*child));
    }
    EXPECT_FALSE(entries.has_place_for(user));
    EXPECT_TRUE(entries.has_place_for(other));
  });
}

}  // namespace
}  // namespace rtev::enable
