// SPDX-License-Identifier: MIT
// The groups that metrics are counted by: a limited number, shared by users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "metrics/group_figures.hpp"

namespace rtev {

/// A group of processes with the same name.
struct Group {
  GroupFigures figures{};
  std::set<std::uint32_t> users{};          ///< whose processes are or were in it, see ProcessInfo::user
  std::uint64_t since_ns = 0, last_ns = 0;  ///< when it was made, and when a process of it was seen last
};

/// Users have equal shares of the groups. One takes more as long as there is room. When there is none, a user below its
/// share gets a group of users who all have more than their share; one at its share gets a group of its own that has no
/// processes. A group counts for each of its users, also after its processes have ended. One thread.
class GroupTable {
 public:
  /// Is told of a group that is removed while it has processes, which have to leave it.
  using OnRemoved = std::function<void(Group& group)>;
  /// A group without processes for so long may be removed for any user.
  static constexpr std::uint64_t forget_after_ns = 3'600'000'000'000;
  /// In this time a user replaces at most so many groups as there may be: each has new series, which databases keep.
  static constexpr std::uint64_t replace_period_ns = 3'600'000'000'000;

  GroupTable(std::size_t max_groups, OnRemoved on_removed)
      : max_groups_(max_groups), on_removed_(std::move(on_removed)) {}

  /// The group of this name, to which this user belongs from now on. Null: there is no room for it. Valid until
  /// forget_removed() is called after it was removed.
  Group* at(const std::string& name, std::uint32_t user, std::uint64_t now_ns);

  /// Calls `visit` with name and group, also for groups that were removed and are not forgotten yet.
  template <typename Visit>
  void each(const Visit& visit) const {
    for (const auto* groups : {&groups_, &removed_})
      for (const auto& [name, group] : *groups) visit(std::string_view(name), *group);
  }
  /// What removed groups have counted was taken. At most `max_groups` are kept until then, those removed first.
  void forget_removed() { removed_.clear(); }
  /// Without those that were removed.
  std::size_t size() const { return groups_.size(); }
  /// How many groups were removed.
  std::uint64_t removed() const { return removed_count_; }

 private:
  using Groups = std::map<std::string, std::unique_ptr<Group>, std::less<>>;
  struct User {
    std::size_t groups = 0;
    std::size_t replaced = 0;  ///< groups removed for this user since `replaced_since_ns`
    std::uint64_t replaced_since_ns = 0;
  };

  bool make_room(std::uint32_t user, std::uint64_t now_ns);
  std::size_t share_of(std::uint32_t user) const;
  void remove(Groups::iterator at);

  std::size_t max_groups_;
  OnRemoved on_removed_;
  Groups groups_, removed_;
  std::map<std::uint32_t, User> users_;
  std::uint64_t removed_count_ = 0;
};

}  // namespace rtev
