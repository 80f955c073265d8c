// SPDX-License-Identifier: MIT
// A directory for the rings of one command.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "inspect/process_view.hpp"
#include "rtev/error.hpp"
#include "session/command/sudo_user.hpp"

namespace rtev {

/// The environment variable by which OCaml's runtime finds the directory of rings.
inline constexpr const char* ring_directory_variable = "OCAML_RUNTIME_EVENTS_DIR";

/// How the name of each such directory begins; six random characters follow.
inline constexpr const char* private_dir_prefix = "rtev-bpf.";

/// Looks at the processes of the host for a PrivateDir; nothing if that fails.
using Look = std::function<std::optional<ProcessView>(ProcessQuery)>;

/// A new directory that only its user can enter; removed at the end, with the files in it. It may belong to another
/// user than this process. Files are therefore removed through a descriptor and links are not followed: if that user
/// replaces the directory, nothing else is removed. A directory with subfolders stays, because the tracer creates none.
/// The directory is locked as long as a process has it open, forked ones included: one without a lock is stale, that
/// is, its tracer was killed.
class PrivateDir {
 public:
  /// Under $TMPDIR or /tmp, with the rights of `owner`, if any. Removes stale directories there.
  static Result<PrivateDir> create(const std::optional<SudoUser>& owner, const Look& look);
  /// A stale directory: its path and an open descriptor.
  static PrivateDir take_over(std::string path, UniqueFd fd) { return {std::move(path), std::move(fd)}; }
  PrivateDir(PrivateDir&& other) noexcept;
  PrivateDir& operator=(PrivateDir&&) = delete;
  ~PrivateDir();

  const std::string& path() const { return path_; }
  /// Removes it now; a second call does nothing. Async-signal-safe.
  void remove() const noexcept;
  /// Processes of the directory's user that have it in their environment; nothing if it cannot be found out.
  std::optional<std::vector<NamedProcess>> users(const Look& look) const;
  /// The destructor does not remove it, because a process still needs it. A later sweep_stale_dirs() does.
  void leave() { stays_ = true; }

 private:
  PrivateDir(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
  bool stays_ = false;
};

/// Removes stale directories under `base`: those of this process's user or of `owner` that only their user can enter,
/// that are older than ten minutes, without a lock, and in no process's environment. Does nothing if other users could
/// replace entries of `base`. Links are not followed. The work is bounded; what cannot be removed stays.
void sweep_stale_dirs(const std::string& base, std::optional<uid_t> owner, const Look& look);

}  // namespace rtev
