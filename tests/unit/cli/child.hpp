// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <iostream>

namespace rtev::test {

/// Runs a command in a process of its own, because commands give up rights for good. Returns its exit status.
inline int run_in_child(const std::function<int()>& command) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const int status = command();
    std::cout.flush();
    std::fflush(nullptr);
    ::_exit(status);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

}  // namespace rtev::test
