// SPDX-License-Identifier: MIT
#include "support/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace rtev::test {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

UniqueFd open_file(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(fd) << path;
  return fd;
}

std::string golden(const std::string& path) {
  return read_file(RTEV_UNIT_TESTS_DIR "/" + path);
}

FileSizeLimit::FileSizeLimit(rlim_t bytes) {
  ::getrlimit(RLIMIT_FSIZE, &before_);
  const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  handler_ = ::signal(SIGXFSZ, SIG_IGN);
}

FileSizeLimit::~FileSizeLimit() {
  ::setrlimit(RLIMIT_FSIZE, &before_);
  ::signal(SIGXFSZ, handler_);
}

}  // namespace rtev::test
