// SPDX-License-Identifier: MIT
// A file system for a guest kernel to begin with: an archive in the "newc" format of cpio.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

namespace rtev::test {

/// Paths are those in the guest, absolute. Folders come by themselves. Throws where a file cannot be read or written.
class Initramfs {
 public:
  explicit Initramfs(const std::filesystem::path& archive);

  void add_text(const std::filesystem::path& path, std::string_view text);
  void add_link(const std::filesystem::path& path, const std::filesystem::path& target);
  /// A program, and the shared libraries it needs, where it looks for them.
  void add_program(const std::filesystem::path& path, const std::filesystem::path& source);
  /// Once, behind everything else.
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
