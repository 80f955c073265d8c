// SPDX-License-Identifier: MIT
// Opens directories that only a program itself, or root, can replace or change.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "enable/held_process.hpp"
#include "inspect/mount_table.hpp"

namespace rtev::enable {

/// Why a directory is not opened.
struct Obstacle {
  int code = 0;            ///< errno, unsafe_file_system among them; 0: see `insecure`
  std::string insecure{};  ///< who could replace the directory, or files in it
};

/// Opens directories as a program would, one component after the other. Each one has to belong to root, to the
/// program's user or to the root of its user namespace, and neither its group nor others may write to it, unless it is
/// sticky. That holds for all on the way to it, too, and for links. One thread.
class SafePath {
 public:
  /// `mounts`: nothing is opened in a file system that may not answer. Null: that was looked at before.
  SafePath(const Credentials& credentials, std::int32_t pid, MountTables* mounts)
      : credentials_(credentials), pid_(pid), mounts_(mounts) {}

  /// Opens `path` with O_PATH: from `root` if it is absolute, else from `start`, whose parents do not count. "" is
  /// `start`.
  std::expected<UniqueFd, Obstacle> open(const UniqueFd& root, const UniqueFd& start, std::string_view path) const;

 private:
  std::expected<void, Obstacle> check(const UniqueFd& directory) const;

  const Credentials& credentials_;
  std::int32_t pid_;
  MountTables* mounts_;
};

}  // namespace rtev::enable
