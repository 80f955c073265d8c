// SPDX-License-Identifier: MIT
// Contents of files, golden files, and a simulated full disk.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>

#include "base/unique_fd.hpp"

namespace rtev::test {

/// The content of a file. Fails the test if it cannot be read.
std::string read_file(const std::filesystem::path& path);
/// The file, open for reading. Fails the test if it cannot be opened.
UniqueFd open_file(const std::filesystem::path& path);
/// The content of a file with an expected text, by its path below tests/unit.
std::string golden(const std::string& path);

/// Lowers the limit on file sizes, which makes a write fail midway, like a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes);
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit();

 private:
  rlimit before_{};
  sighandler_t handler_;
};

}  // namespace rtev::test
