// SPDX-License-Identifier: MIT
// Builds the initial file system of a guest kernel: a cpio archive in the "newc" format.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

namespace rtev::test {

/// Paths are absolute paths in the guest. Parent folders are created as needed. Throws if a file cannot be read or
/// written.
class Initramfs {
 public:
  explicit Initramfs(const std::filesystem::path& archive);

  void add_text(const std::filesystem::path& path, std::string_view text);
  void add_link(const std::filesystem::path& path, const std::filesystem::path& target);
  /// Adds a program and its shared libraries, at the paths where the dynamic linker looks for them. Permissions stay,
  /// also set-user-ID; root owns everything.
  void add_program(const std::filesystem::path& path, const std::filesystem::path& source);
  /// Ends the archive. Call once, last.
  void finish();

 private:
  void add(const std::filesystem::path& path, unsigned mode, std::string_view content);
  void add_folders_of(const std::filesystem::path& path);
  void add_file(const std::filesystem::path& path, const std::filesystem::path& source);

  std::ofstream out_;
  std::set<std::filesystem::path> added_;
  unsigned inode_ = 0;
};

}  // namespace rtev::test
