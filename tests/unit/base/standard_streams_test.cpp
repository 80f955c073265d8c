// SPDX-License-Identifier: MIT
#include "base/standard_streams.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace rtev {
namespace {

/// In a process that was started with these streams closed: do they stay unusable, and is the next file beyond them?
int look(std::initializer_list<int> closed) {
  for (const int fd : closed) ::close(fd);
  reserve_standard_streams();
  for (const int fd : closed) {
    char byte = 0;
    if (::write(fd, &byte, 1) != -1 || errno != EBADF || ::read(fd, &byte, 1) != -1 || errno != EBADF) return 1;
  }
  return ::open("/dev/null", O_RDONLY) > STDERR_FILENO ? 0 : 2;
}

TEST(StandardStreams, ClosedOnesAreNotReused) {
  EXPECT_EXIT(::_exit(look({0})), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(::_exit(look({1})), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(::_exit(look({0, 1})), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(::_exit(look({0, 1, 2})), testing::ExitedWithCode(0), "");
}

TEST(StandardStreams, OpenOnesStay) {
  const auto look = [] {
    const int mode = ::fcntl(STDOUT_FILENO, F_GETFL);
    reserve_standard_streams();
    return ::fcntl(STDOUT_FILENO, F_GETFL) == mode ? 0 : 1;
  };
  EXPECT_EXIT(::_exit(look()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace rtev
