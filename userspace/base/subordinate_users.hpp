// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace rtev {

/// User ids that belong to other users (subuid(5)): containers of an ordinary user run under them, 65,536 by default.
class SubordinateUsers {
 public:
  /// From files in the formats of /etc/subuid and /etc/passwd. What is missing or invalid is left out.
  SubordinateUsers(const std::string& subuid, const std::string& passwd);

  /// The user that an id belongs to; the id itself if it belongs to none. Of a range of root, whose containers are
  /// other people's, the first id of its block of 65,536.
  std::uint32_t owner(std::uint32_t id) const;

 private:
  struct Range {
    std::uint64_t end;
    std::uint32_t owner;
  };
  std::map<std::uint64_t, Range> ranges_;  ///< by their first id
};

/// The user whose share a process takes that runs as this one: else a user with many ids would have many shares.
/// Thread-safe. Reads this host's files in the first call.
std::uint32_t charged_user(std::uint32_t id);

}  // namespace rtev
