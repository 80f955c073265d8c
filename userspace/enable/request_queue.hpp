// SPDX-License-Identifier: MIT
// Requests that the worker has not looked at yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "enable/enabler.hpp"

namespace rtev::enable {

/// Users take turns: one who starts programs all the time does not delay those of others. One thread.
class RequestQueue {
 public:
  /// Replaces an earlier one for the same process: it may execute itself faster than it is looked at.
  void add(const EnableRequest& request) {
    OfUser& own = by_user_[request.user];
    if (own.requests.insert_or_assign(request.pid, request).second) own.pids.push_back(request.pid);
  }
  /// One that was put off, unless there is one for the same process: that is newer.
  void add_again(const EnableRequest& request) {
    OfUser& own = by_user_[request.user];
    if (own.requests.try_emplace(request.pid, request).second) own.pids.push_back(request.pid);
  }
  bool is_empty() const { return by_user_.empty(); }
  /// Of the next user of whom this is true the oldest one.
  std::optional<EnableRequest> take(const std::function<bool(std::uint32_t user)>& is_allowed) {
    auto next = by_user_.upper_bound(last_user_);
    for (std::size_t users = by_user_.size(); users > 0; --users, ++next) {
      if (next == by_user_.end()) next = by_user_.begin();
      auto& [user, own] = *next;
      if (!is_allowed(user)) continue;
      last_user_ = user;
      const auto request = own.requests.extract(own.pids.front());
      own.pids.pop_front();
      if (own.pids.empty()) by_user_.erase(next);
      return request.mapped();
    }
    return std::nullopt;
  }

 private:
  struct OfUser {
    std::deque<std::int32_t> pids{};  ///< oldest first
    std::map<std::int32_t, EnableRequest> requests{};
  };

  std::map<std::uint32_t, OfUser> by_user_;
  std::uint32_t last_user_ = 0;  ///< whose turn it was
};

}  // namespace rtev::enable
