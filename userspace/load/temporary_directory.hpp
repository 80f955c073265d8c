// SPDX-License-Identifier: MIT
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "rtev/error.hpp"

namespace rtev::load {

/// A new directory for the ring files of a load, accessible only to its user; removed with its files.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> create() {
    const char* const parent = std::getenv("TMPDIR");
    std::string path = std::string(parent != nullptr && *parent != '\0' ? parent : "/tmp") + "/rtev-load.XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return errno_error(errno, "cannot create directory", path, "name another one with --directory");
    return TemporaryDirectory(std::move(path));
  }
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace rtev::load
