// SPDX-License-Identifier: MIT
// Files of rings that are to be removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "enable/user_costs.hpp"
#include "enable/user_turns.hpp"

namespace rtev::enable {

/// What is switched off goes off at once; its ring's file is removed later, one at a time, since a directory may take a
/// second to answer. Users take turns, within their share of time. One thread.
template <typename Removal>
class RemovalQueue {
 public:
  /// `costs`: must outlive the object.
  explicit RemovalQueue(const UserCosts& costs) : costs_(costs) {}

  void add(std::uint32_t user, Removal removal) { turns_.add(user, std::move(removal)); }
  bool is_empty() const { return turns_.is_empty(); }
  std::size_t size() const { return turns_.size(); }
  std::size_t size_of(std::uint32_t user) const { return turns_.size_of(user); }

  /// Whether take() has one.
  bool is_due(std::uint64_t now_ns) const {
    return !is_finishing_ && turns_.has_next([&](std::uint32_t user) { return costs_.has_time_for(user, now_ns); });
  }
  /// Of the next user who has time for it, and the user.
  std::optional<std::pair<std::uint32_t, Removal>> take(std::uint64_t now_ns) {
    if (is_finishing_) return std::nullopt;
    return turns_.take([&](std::uint32_t user) { return costs_.has_time_for(user, now_ns); });
  }
  template <typename IsMeant>
  std::vector<Removal> take_all(std::uint32_t user, const IsMeant& is_meant) {
    return turns_.take_all(user, is_meant);
  }

  /// At the end of the run take() has none: events of others go off first.
  void finish() { is_finishing_ = true; }
  /// When they are off. Root's come first, and last those of users who kept this process waiting: by directories that
  /// did not answer, then by the time that they took. If it is killed before all are removed, what stays is theirs.
  std::optional<std::pair<std::uint32_t, Removal>> take_left(std::uint64_t now_ns) {
    return turns_.take_least([&](std::uint32_t user) {
      return std::tuple(costs_.unanswered(user), user != 0, costs_.unpaid_ns(user, now_ns));
    });
  }

 private:
  const UserCosts& costs_;
  UserTurns<Removal> turns_{};
  bool is_finishing_ = false;
};

}  // namespace rtev::enable
