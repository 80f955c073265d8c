// SPDX-License-Identifier: MIT
// What BPF reports of processes whose events are on, and that change so that their children could not make rings.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "kernel/enable_programs.hpp"
#include "live/kernel_fixture.hpp"
#include "support/poll_until.hpp"
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
  std::uint32_t reported(
      const std::function<int()>& change, const std::function<int()>& before = [] { return 0; },
      bool may_filter = false) {
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
    EXPECT_TRUE(programs_->watch(child.pid(), 0, may_filter));
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

TEST_F(WatchedLive, AFilterOfSystemCallsIsReportedUnlessItMayHaveOne) {
  const auto filter = [] {
    sock_filter allow{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ALLOW};
    const sock_fprog program{.len = 1, .filter = &allow};
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
  };
  EXPECT_EQ(reported(filter), static_cast<std::uint32_t>(RTEV_CHANGED_FILTER));
  EXPECT_EQ(reported(filter, [] { return 0; }, true), 0u);
}

/// Who connects to a server has it open files: its next child could not make its ring.
TEST_F(WatchedLive, AProgramThatCanOpenFewMoreFilesIsReported) {
  constexpr rlim_t limit = 128;
  const auto lower = [] {
    const rlimit few{.rlim_cur = limit, .rlim_max = limit};
    return ::setrlimit(RLIMIT_NOFILE, &few);
  };
  const auto open_until = [](int last) {
    return [last] {
      while (const int fd = ::dup(STDERR_FILENO)) {
        if (fd < 0 || fd >= last) return fd < 0 ? -1 : 0;
      }
      return -1;
    };
  };
  EXPECT_EQ(reported(open_until(limit - 20), lower), 0u);
  EXPECT_EQ(reported(open_until(limit - 2), lower), static_cast<std::uint32_t>(RTEV_CHANGED_FILES));
}

/// Until it executes its program it runs in the memory of its parent: what is written there is the parent's.
TEST_F(WatchedLive, AProcessAfterVforkIsNotReportedAsRunning) {
  const Pipe pids;
  const Child parent([&] {
    if (::vfork() != 0) return;  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const pid_t own = ::getpid();
    [[maybe_unused]] const ssize_t written = ::write(pids.out.get(), &own, sizeof own);
    for (;;) ::sched_yield();
  });
  parent.release();
  pid_t child = 0;
  ASSERT_EQ(::read(pids.in.get(), &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ASSERT_TRUE(programs_->want(child, 0));
  ASSERT_TRUE(programs_->want(::getpid(), 0));
  constexpr int enough = 20;  // a millisecond apart
  int own_reports = 0, child_reports = 0;
  EXPECT_TRUE(test::poll_until([&] {
    programs_->read([&](const rtev_running& record) {
      child_reports += record.tgid == static_cast<std::uint32_t>(child);
      own_reports += record.tgid == static_cast<std::uint32_t>(::getpid());
    });
    return own_reports >= enough;
  }));
  EXPECT_EQ(child_reports, 0);
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
  for (pid_t number = 0; number < RTEV_MAX_WATCHED; ++number) ASSERT_TRUE(programs_->watch(no_pid + number, 0, false));
  EXPECT_FALSE(programs_->watch(no_pid - 1, 0, false));
  EXPECT_TRUE(programs_->watch(no_pid, 0, false)) << "it has a place";
  programs_->unwatch(no_pid);
  EXPECT_TRUE(programs_->watch(no_pid - 1, 0, false));
}

}  // namespace
}  // namespace rtev::kernel
