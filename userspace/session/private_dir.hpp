// SPDX-License-Identifier: MIT
// A directory for the rings of one command.
#pragma once

#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"
#include "session/sudo_user.hpp"

namespace rtev {

/// A new directory that only its user can enter; removed with the files in it. It may belong to another user than this
/// process: the files are removed through a descriptor and links are not followed, so that whatever that user puts in
/// its place, nothing else is removed. Folders in it are not ours; a directory that holds any stays.
class PrivateDir {
 public:
  /// Under $TMPDIR or /tmp; given to `owner`, if any.
  static Result<PrivateDir> create(const std::optional<SudoUser>& owner);
  PrivateDir(PrivateDir&& other) noexcept;
  PrivateDir& operator=(PrivateDir&&) = delete;
  ~PrivateDir();

  const std::string& path() const { return path_; }
  /// Removes it now; a second time does no harm. Async-signal-safe.
  void remove() const noexcept;

 private:
  PrivateDir(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
};

}  // namespace rtev
