// SPDX-License-Identifier: MIT
// A control group for memory, of version 1 or 2.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

namespace rtev::test {

/// Removed at the end: its processes must have ended.
class MemoryGroup {
 public:
  /// Nothing if this host has no place for one.
  static std::optional<MemoryGroup> make();
  MemoryGroup(MemoryGroup&& other) noexcept;
  MemoryGroup& operator=(MemoryGroup&&) = delete;
  ~MemoryGroup();

  const std::filesystem::path& path() const { return path_; }
  /// A group in it.
  std::filesystem::path child() const { return path_ / "child"; }
  bool limit(std::uint64_t bytes) const;
  bool add(pid_t pid) const;

 private:
  MemoryGroup(std::filesystem::path path, const char* limit_file) : path_(std::move(path)), limit_file_(limit_file) {}

  std::filesystem::path path_;
  const char* limit_file_;
};

}  // namespace rtev::test
