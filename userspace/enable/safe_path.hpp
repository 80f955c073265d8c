// SPDX-License-Identifier: MIT
// Opens directories that only a program itself, or root, can replace or change.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "enable/held_process.hpp"
#include "inspect/mount_table.hpp"

namespace rtev::enable {

/// Why a directory is not opened.
struct Obstacle {
  int code = 0;            ///< errno, unsafe_file_system among them; 0: see `insecure`
  std::string insecure{};  ///< who could replace the directory, or files in it
};

/// A directory that was opened, and all directories on the way to it (O_PATH).
class SafeDirectory {
 public:
  int fd() const { return opened_[last_].get(); }
  /// Whether this process, with the rights that it has now, would come there, too. Looks nothing up again. errno, or 0.
  int obstacle() const;
  /// Whether nobody but this user and root comes to its file system: its first directory on the way is the user's, and
  /// closed to others.
  bool is_in_file_system_of(uid_t user) const;

 private:
  friend class SafePath;
  std::vector<UniqueFd> opened_;
  std::size_t last_ = 0;
};

/// Opens directories as a program would, one component after the other. Each one has to belong to root, to the
/// program's user or to the root of its user namespace, and neither its group nor others may write to it, unless it is
/// sticky. That holds for all on the way to it, too, and for links. One thread.
class SafePath {
 public:
  /// Nothing is opened in a file system that may not answer.
  SafePath(const Credentials& credentials, std::int32_t pid, MountTables& mounts)
      : credentials_(credentials), pid_(pid), mounts_(mounts) {}

  /// `path` is absolute, and begins at `root`.
  std::expected<SafeDirectory, Obstacle> open(const UniqueFd& root, std::string_view path) const;

 private:
  bool may_answer(const UniqueFd& file) const { return mounts_.check(file.get(), pid_, true).has_value(); }
  std::expected<void, Obstacle> check(const UniqueFd& directory) const;

  const Credentials& credentials_;
  std::int32_t pid_;
  MountTables& mounts_;
};

}  // namespace rtev::enable
