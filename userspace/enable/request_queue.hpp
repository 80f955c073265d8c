// SPDX-License-Identifier: MIT
// Requests that the worker has not looked at yet.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "enable/enabler.hpp"

namespace rtev::enable {

/// Users take turns: one who starts programs all the time does not delay those of others. One thread.
class RequestQueue {
 public:
  void add(const EnableRequest& request) { by_user_[request.user].push_back(request); }
  bool is_empty() const { return by_user_.empty(); }
  /// Of the next user the oldest one. Precondition: not is_empty().
  EnableRequest take() {
    auto next = by_user_.upper_bound(last_user_);
    if (next == by_user_.end()) next = by_user_.begin();
    auto& [user, requests] = *next;
    last_user_ = user;
    const EnableRequest request = requests.front();
    requests.pop_front();
    if (requests.empty()) by_user_.erase(next);
    return request;
  }

 private:
  std::map<std::uint32_t, std::deque<EnableRequest>> by_user_;
  std::uint32_t last_user_ = 0;  ///< whose turn it was
};

}  // namespace rtev::enable
