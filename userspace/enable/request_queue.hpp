// SPDX-License-Identifier: MIT
// Requests that the worker has not looked at yet.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "enable/enabler.hpp"
#include "enable/user_turns.hpp"

namespace rtev::enable {

/// Of each process there is one for each user who was found to own it. One thread.
class RequestQueue {
 public:
  /// Replaces an earlier one for the same process: it may execute itself faster than it is looked at.
  void add(const EnableRequest& request) {
    if (requests_.insert_or_assign({request.user, request.pid}, request).second) turns_.add(request.user, request.pid);
  }
  /// One that was put off, unless there is one for the same process: that is newer.
  void add_again(const EnableRequest& request) {
    if (requests_.try_emplace({request.user, request.pid}, request).second) turns_.add(request.user, request.pid);
  }
  bool is_empty() const { return turns_.is_empty(); }
  /// Of the next user of whom this is true the oldest one.
  std::optional<EnableRequest> take(const std::function<bool(std::uint32_t user)>& is_allowed) {
    const auto next = turns_.take(is_allowed);
    if (!next) return std::nullopt;
    return requests_.extract(*next).mapped();
  }

 private:
  UserTurns<std::int32_t> turns_;  ///< pids
  std::map<std::pair<std::uint32_t, std::int32_t>, EnableRequest> requests_;
};

}  // namespace rtev::enable
