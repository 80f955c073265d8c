// SPDX-License-Identifier: MIT
#include "metrics/group_table.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace rtev {

Group* GroupTable::at(const std::string& name, std::uint32_t user, std::uint64_t now_ns) {
  auto known = groups_.find(name);
  if (known == groups_.end()) {
    if (groups_.size() >= max_groups_ && !make_room(user, now_ns)) return nullptr;
    // One that was removed and not forgotten yet goes on counting where it was.
    known = groups_.insert(removed_.extract(name)).position;
    if (known == groups_.end()) known = groups_.emplace(name, std::make_unique<Group>()).first;
    known->second->since_ns = known->second->last_ns = now_ns;
  }
  if (known->second->users.insert(user).second) ++users_[user].groups;
  return known->second.get();
}

/// In groups. At least one: more users than groups have none each.
std::size_t GroupTable::share_of(std::uint32_t user) const {
  const auto others =
      std::ranges::count_if(users_, [&](const auto& one) { return one.first != user && one.second.groups > 0; });
  return std::max<std::size_t>(1, max_groups_ / (static_cast<std::size_t>(others) + 1));
}

/// Removes a group for a user who needs one, if one may go.
bool GroupTable::make_room(std::uint32_t user, std::uint64_t now_ns) {
  std::erase_if(users_, [&](const auto& one) {
    return one.second.groups == 0 && one.second.replaced_since_ns + replace_period_ns <= now_ns;
  });
  User& newcomer = users_[user];
  if (newcomer.replaced_since_ns + replace_period_ns <= now_ns) {
    newcomer.replaced_since_ns = now_ns;
    newcomer.replaced = 0;
  }
  if (newcomer.replaced >= max_groups_) return false;
  const std::size_t share = share_of(user);
  const bool is_below = newcomer.groups < share;

  auto first = groups_.end();
  std::tuple<bool, std::size_t, std::uint64_t> first_rank;
  for (auto at = groups_.begin(); at != groups_.end(); ++at) {
    const Group& group = *at->second;
    const bool is_unused = group.figures.processes == 0;
    // It is needed as much as by the user with the fewest groups.
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    for (const std::uint32_t one : group.users) fewest = std::min(fewest, users_.at(one).groups);
    const bool is_own = group.users.size() == 1 && group.users.contains(user);
    const bool may_go =
        (is_unused && group.last_ns + forget_after_ns < now_ns) || (is_below ? fewest > share : is_unused && is_own);
    if (!may_go) continue;
    // Unused ones go before used ones, then those of whoever has most, then the one unused longest or the newest.
    const std::tuple rank{is_unused, fewest, is_unused ? ~group.last_ns : group.since_ns};
    if (first != groups_.end() && rank <= first_rank) continue;
    first = at;
    first_rank = rank;
  }
  if (first == groups_.end()) return false;
  ++newcomer.replaced;
  remove(first);
  return true;
}

void GroupTable::remove(Groups::iterator at) {
  Group& group = *at->second;
  for (const std::uint32_t user : group.users) --users_.at(user).groups;
  group.users.clear();
  auto removed = groups_.extract(at);
  if (removed_.size() < max_groups_) removed_.insert(std::move(removed));
  ++removed_count_;
  if (group.figures.processes > 0) on_removed_(group);
}

}  // namespace rtev
