// SPDX-License-Identifier: MIT
// Bounds the memory that is spent on behalf of users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace rtev {

/// A number of bytes, of which one user gets three quarters at the most. One thread.
class MemoryBudget {
  struct State {
    std::size_t limit;
    std::size_t used = 0;
    std::map<std::uint32_t, std::size_t> by_user{};
  };

 public:
  explicit MemoryBudget(std::size_t limit) : state_(std::make_shared<State>(State{.limit = limit})) {}

  /// Bytes that are charged to a user while the object lives, which may be longer than the budget.
  class Account {
   public:
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;
    ~Account() {
      if (bytes_ == 0) return;
      state_->used -= bytes_;
      const auto user = state_->by_user.find(user_);
      user->second -= bytes_;
      if (user->second == 0) state_->by_user.erase(user);
    }

    /// Charges more. False, and nothing is charged, if that is too much for the user or in all.
    bool grow(std::size_t bytes) {
      const auto known = state_->by_user.find(user_);
      const std::size_t of_user = known == state_->by_user.end() ? 0 : known->second;
      if (state_->used + bytes > state_->limit || of_user + bytes > state_->limit / 4 * 3) return false;
      state_->used += bytes;
      state_->by_user[user_] = of_user + bytes;
      bytes_ += bytes;
      return true;
    }

   private:
    friend MemoryBudget;
    Account(std::shared_ptr<State> state, std::uint32_t user) : state_(std::move(state)), user_(user) {}

    std::shared_ptr<State> state_;
    std::uint32_t user_;
    std::size_t bytes_ = 0;
  };

  std::shared_ptr<Account> open_account(std::uint32_t user) const {
    return std::shared_ptr<Account>(new Account(state_, user));
  }
  std::size_t used() const { return state_->used; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace rtev
