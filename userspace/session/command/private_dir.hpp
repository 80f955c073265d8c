// SPDX-License-Identifier: MIT
// A directory for the rings of one command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "inspect/procfs.hpp"
#include "rtev/error.hpp"
#include "session/command/sudo_user.hpp"

namespace rtev {

/// The environment variable by which OCaml's runtime finds the directory of rings.
inline constexpr const char* ring_directory_variable = "OCAML_RUNTIME_EVENTS_DIR";

/// A new directory that only its user can enter; removed with the files in it. It may belong to another user than this
/// process: the files are removed through a descriptor and links are not followed, so that whatever that user puts in
/// its place, nothing else is removed. Folders in it are not ours; a directory that holds any stays. It is locked as
/// long as a process has it, forked ones included: one that is not was left behind by a process that was killed.
class PrivateDir {
 public:
  /// Under $TMPDIR or /tmp; given to `owner`, if any. Removes what was left behind there.
  static Result<PrivateDir> create(const std::optional<SudoUser>& owner);
  /// One that was left behind: by its path, and opened.
  static PrivateDir take_over(std::string path, UniqueFd fd) { return {std::move(path), std::move(fd)}; }
  PrivateDir(PrivateDir&& other) noexcept;
  PrivateDir& operator=(PrivateDir&&) = delete;
  ~PrivateDir();

  const std::string& path() const { return path_; }
  /// Removes it now; a second time does no harm. Async-signal-safe.
  void remove() const noexcept;
  /// Processes of the directory's user that have it in their environment.
  std::vector<std::int32_t> users(const Procfs& procfs = Procfs()) const;
  /// The end of the object leaves it where it is, for a process that still needs it. A later sweep_stale_dirs() finds
  /// it.
  void leave() { stays_ = true; }

 private:
  PrivateDir(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
  bool stays_ = false;
};

}  // namespace rtev
