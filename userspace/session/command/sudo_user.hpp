// SPDX-License-Identifier: MIT
// The person behind sudo.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "rtev/error.hpp"

namespace rtev {

/// The user who called sudo: commands run as this user, who also owns their files.
struct SudoUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;             ///< as /etc/passwd has it, else as sudo does; may be empty
  std::string home;             ///< empty if /etc/passwd does not have the user
  std::vector<gid_t> groups{};  ///< the primary one and those of /etc/group

  /// From SUDO_UID and SUDO_GID, when this process is root; nothing without them. Call check_sudo_environment() first:
  /// values that are no numbers are ignored here.
  static std::optional<SudoUser> of_environment();

  /// Turns this process into one of the user's, for good, with USER, LOGNAME and HOME to match. False (errno) if that
  /// fails.
  bool become() const;
};

/// Fails if this process is root and SUDO_UID or SUDO_GID is missing or is no number, but not both are missing: to take
/// root for the caller would give the caller of sudo the rights of root.
Result<void> check_sudo_environment();

/// The user whose files this process may write: the one who called sudo, else its own.
uid_t calling_user();

/// Turns this process into one of the user who called sudo, for good: what follows reads files that anyone may have
/// made, and needs no rights of root. Changes nothing without sudo. It applies to all threads.
Result<void> become_calling_user();

/// "bob", or "user 1001" if /etc/passwd does not have it.
std::string name_of_user(uid_t uid);

/// While it exists the calling thread opens, creates, renames and removes files with the rights of the user who called
/// sudo. Other threads keep theirs. Without sudo it changes nothing. Destroy it on the thread that made it.
class FileRights {
 public:
  /// Fails if the rights cannot be changed.
  static Result<FileRights> of_caller() { return of(SudoUser::of_environment()); }
  /// The same for this user; without one nothing changes.
  static Result<FileRights> of(const std::optional<SudoUser>& user);

  FileRights(FileRights&& other) noexcept;
  FileRights& operator=(FileRights&&) = delete;
  ~FileRights();

 private:
  FileRights() = default;

  bool changed_ = false;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  std::vector<gid_t> groups_{};  ///< those before
};

}  // namespace rtev
