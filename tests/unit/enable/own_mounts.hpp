// SPDX-License-Identifier: MIT
// For tests that mount something: in a process of its own, with mounts of its own.
#pragma once

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/capabilities.hpp"

namespace rtev::enable {

inline bool may_mount() {
  return ::geteuid() == 0 && has_capability(CAP_SYS_ADMIN);
}

inline void with_own_mounts(const std::function<void()>& test) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    EXPECT_EQ(::unshare(CLONE_NEWNS), 0);
    EXPECT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    if (!::testing::Test::HasFailure()) test();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

inline bool mount_memory(const char* place) {
  return ::mount("none", place, "tmpfs", 0, "mode=0755") == 0;
}

}  // namespace rtev::enable
