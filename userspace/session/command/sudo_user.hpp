// SPDX-License-Identifier: MIT
// The person behind sudo.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace rtev {

/// The user who called sudo: commands run as this user, who also owns their files.
struct SudoUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;             ///< as /etc/passwd has it, else as sudo does; may be empty
  std::string home;             ///< empty if /etc/passwd does not have the user
  std::vector<gid_t> groups{};  ///< the primary one and those of /etc/group

  /// From SUDO_UID and SUDO_GID, when this process is root; nothing without them.
  static std::optional<SudoUser> of_environment();

  /// Turns this process into one of the user's, for good, with USER, LOGNAME and HOME to match. False (errno) if that
  /// fails.
  bool become() const;
};

}  // namespace rtev
