// SPDX-License-Identifier: MIT
// Requests that the worker has not looked at yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "enable/enabler.hpp"

namespace rtev::enable {

/// Users take turns, in the order in which they came: one who starts programs all the time does not delay those of
/// others. One thread.
class RequestQueue {
 public:
  /// Replaces an earlier one for the same process: it may execute itself faster than it is looked at.
  void add(const EnableRequest& request) {
    OfUser& own = of(request.user);
    if (own.requests.insert_or_assign(request.pid, request).second) own.pids.push_back(request.pid);
  }
  /// One that was put off, unless there is one for the same process: that is newer.
  void add_again(const EnableRequest& request) {
    OfUser& own = of(request.user);
    if (own.requests.try_emplace(request.pid, request).second) own.pids.push_back(request.pid);
  }
  bool is_empty() const { return turns_.empty(); }
  /// Of the next user of whom this is true the oldest one.
  std::optional<EnableRequest> take(const std::function<bool(std::uint32_t user)>& is_allowed) {
    const auto next = std::ranges::find_if(turns_, is_allowed);
    if (next == turns_.end()) return std::nullopt;
    const std::uint32_t user = *next;
    OfUser& own = by_user_[user];
    const auto request = own.requests.extract(own.pids.front());
    own.pids.pop_front();
    turns_.erase(next);
    if (own.pids.empty())
      by_user_.erase(user);
    else
      turns_.push_back(user);
    return request.mapped();
  }

 private:
  struct OfUser {
    std::deque<std::int32_t> pids{};  ///< oldest first
    std::map<std::int32_t, EnableRequest> requests{};
  };

  OfUser& of(std::uint32_t user) {
    const auto [own, is_new] = by_user_.try_emplace(user);
    if (is_new) turns_.push_back(user);
    return own->second;
  }

  std::map<std::uint32_t, OfUser> by_user_;
  std::deque<std::uint32_t> turns_;  ///< users with requests, the next one first
};

}  // namespace rtev::enable
