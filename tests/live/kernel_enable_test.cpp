// SPDX-License-Identifier: MIT
// What BPF reports of processes whose events are on, and that change so that their children could not make rings.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "kernel/enable_programs.hpp"
#include "live/kernel_fixture.hpp"
#include "support/temp_dir.hpp"

namespace rtev::kernel {
namespace {

class WatchedLive : public KernelLive {
 protected:
  void SetUp() override {
    KernelLive::SetUp();
    if (IsSkipped()) return;
    auto programs = EnablePrograms::load();
    ASSERT_TRUE(programs) << programs.error().message();
    programs_.emplace(std::move(*programs));
  }

  /// What is reported of a process of root that does this, while it is watched; 0: nothing. `before`: while it is not.
  std::uint32_t reported(const std::function<int()>& change, const std::function<int()>& before = [] { return 0; }) {
    const Pipe questions, answers;
    const Child child([&] {
      if (before() != 0) std::perror("before");
      answers.put();
      questions.get();
      answers.put();
      questions.get();
      if (change() != 0) std::perror("change");
      answers.put();
      answer(questions, answers);
    });
    child.release();
    answers.get();
    EXPECT_TRUE(programs_->watch(child.pid(), 0));
    std::uint32_t changed = 0;
    constexpr int enough = 20;  // times that it sleeps and wakes
    for (int times = 0; times < enough && changed == 0; ++times) {
      questions.put();
      answers.get();
      programs_->read([&](const rtev_running& record) {
        if (record.tgid == static_cast<std::uint32_t>(child.pid())) changed = record.changed;
      });
    }
    programs_->unwatch(child.pid());
    return changed;
  }

  std::optional<EnablePrograms> programs_;
};

TEST_F(WatchedLive, ChangesOfAProcessAreReported) {
  constexpr uid_t other_user = 12345;
  EXPECT_EQ(reported([] { return 0; }), 0u);
  EXPECT_EQ(reported([] { return ::seteuid(other_user); }), static_cast<std::uint32_t>(RTEV_CHANGED_USER));
  EXPECT_EQ(reported([] { return ::chroot("/proc"); }), static_cast<std::uint32_t>(RTEV_CHANGED_ROOT));
  EXPECT_EQ(reported([] { return ::unshare(CLONE_NEWNS); }), static_cast<std::uint32_t>(RTEV_CHANGED_MOUNTS));
}

TEST_F(WatchedLive, AlsoARootDirectoryThatOnlyHasOtherMounts) {
  const test::TempDir dir;
  const std::string path = dir.path();
  const auto mount_root = [&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return -1;
    return ::mount("/", path.c_str(), nullptr, MS_BIND, nullptr);
  };
  EXPECT_EQ(reported([&] { return ::chroot(path.c_str()); }, mount_root),
            static_cast<std::uint32_t>(RTEV_CHANGED_ROOT));
}

TEST_F(WatchedLive, ThereAreABoundedNumberOfPlaces) {
  constexpr pid_t no_pid = 1 << 23;  // the kernel has none from there on
  for (pid_t number = 0; number < RTEV_MAX_WATCHED; ++number) ASSERT_TRUE(programs_->watch(no_pid + number, 0));
  EXPECT_FALSE(programs_->watch(no_pid - 1, 0));
  EXPECT_TRUE(programs_->watch(no_pid, 0)) << "it has a place";
  programs_->unwatch(no_pid);
  EXPECT_TRUE(programs_->watch(no_pid - 1, 0));
}

}  // namespace
}  // namespace rtev::kernel
