// SPDX-License-Identifier: MIT
#include "base/subordinate_users.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/parse.hpp"

namespace rtev {
namespace {

/// Ids of a container, as systemd, LXD and Podman hand them out.
constexpr std::uint32_t block = 65536;

/// The text before the next colon, which is removed.
std::string_view take_field(std::string_view& line) {
  const std::string_view field = line.substr(0, line.find(':'));
  line.remove_prefix(std::min(line.size(), field.size() + 1));
  return field;
}

std::map<std::string, std::uint32_t, std::less<>> users_in(const std::string& passwd) {
  std::map<std::string, std::uint32_t, std::less<>> users;
  std::ifstream file(passwd);
  for (std::string line; std::getline(file, line);) {
    std::string_view rest = line;
    const std::string_view name = take_field(rest);
    take_field(rest);
    if (const auto id = parse_number<std::uint32_t>(take_field(rest))) users.emplace(name, *id);
  }
  return users;
}

}  // namespace

SubordinateUsers::SubordinateUsers(const std::string& subuid, const std::string& passwd) {
  const auto users = users_in(passwd);
  std::ifstream file(subuid);
  for (std::string line; std::getline(file, line);) {
    std::string_view rest = line;
    const std::string_view user = take_field(rest);
    const auto known = users.find(user);
    const auto owner = known != users.end() ? std::optional(known->second) : parse_number<std::uint32_t>(user);
    const auto first = parse_number<std::uint32_t>(take_field(rest)), count = parse_number<std::uint32_t>(rest);
    if (owner && first && count && *count > 0)
      ranges_.insert_or_assign(*first, Range{.end = std::uint64_t{*first} + *count, .owner = *owner});
  }
}

std::uint32_t SubordinateUsers::owner(std::uint32_t id) const {
  const auto next = ranges_.upper_bound(id);
  if (next == ranges_.begin()) return id;
  const Range& range = std::prev(next)->second;
  if (id >= range.end) return id;
  // Ranges of root are those of containers, whose tenants are not root: each has a block.
  return range.owner != 0 ? range.owner : id - id % block;
}

std::uint32_t charged_user(std::uint32_t id) {
  static const SubordinateUsers users("/etc/subuid", "/etc/passwd");
  return users.owner(id);
}

}  // namespace rtev
