// SPDX-License-Identifier: MIT
// What waits to be done for many users.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace rtev::enable {

/// Users take turns, in the order in which they came: one who has a lot to do does not delay others. Of a user the
/// oldest one comes first. One thread.
template <typename Item>
class UserTurns {
 public:
  using OfUser = std::pair<std::uint32_t, Item>;

  void add(std::uint32_t user, Item item) {
    const auto [own, is_new] = by_user_.try_emplace(user);
    if (is_new) turns_.push_back(user);
    own->second.push_back(std::move(item));
    ++size_;
  }

  bool is_empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t size_of(std::uint32_t user) const {
    const auto own = by_user_.find(user);
    return own == by_user_.end() ? 0 : own->second.size();
  }

  /// Whether take() has one.
  template <typename IsAllowed>
  bool has_next(const IsAllowed& is_allowed) const {
    return std::ranges::any_of(turns_, is_allowed);
  }
  /// Of the next user of whom this is true.
  template <typename IsAllowed>
  std::optional<OfUser> take(const IsAllowed& is_allowed) {
    return take_of(std::ranges::find_if(turns_, is_allowed));
  }
  /// Of the user with the least rank; of several the next one.
  template <typename Rank>
  std::optional<OfUser> take_least(const Rank& rank) {
    return take_of(std::ranges::min_element(turns_, {}, rank));
  }
  /// Those of a user of which this is true. The others keep their places.
  template <typename IsMeant>
  std::vector<Item> take_all(std::uint32_t user, const IsMeant& is_meant) {
    std::vector<Item> taken;
    const auto own = by_user_.find(user);
    if (own == by_user_.end()) return taken;
    std::deque<Item> kept;
    for (Item& item : own->second) {
      if (is_meant(std::as_const(item)))
        taken.push_back(std::move(item));
      else
        kept.push_back(std::move(item));
    }
    size_ -= taken.size();
    own->second = std::move(kept);
    if (own->second.empty()) {
      by_user_.erase(own);
      std::erase(turns_, user);
    }
    return taken;
  }

 private:
  std::optional<OfUser> take_of(const std::deque<std::uint32_t>::iterator& next) {
    if (next == turns_.end()) return std::nullopt;
    const std::uint32_t user = *next;
    turns_.erase(next);
    const auto own = by_user_.find(user);
    OfUser taken(user, std::move(own->second.front()));
    own->second.pop_front();
    --size_;
    if (own->second.empty())
      by_user_.erase(own);
    else
      turns_.push_back(user);
    return taken;
  }

  std::map<std::uint32_t, std::deque<Item>> by_user_;  ///< those who have some
  std::deque<std::uint32_t> turns_;                    ///< the same users, the next one first
  std::size_t size_ = 0;
};

}  // namespace rtev::enable
