// SPDX-License-Identifier: MIT
#include "support/golden.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace rtev::test {

std::string golden(const std::string& path) {
  std::ifstream file(std::string(RTEV_UNIT_TESTS_DIR "/") + path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace rtev::test
