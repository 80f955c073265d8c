// SPDX-License-Identifier: MIT
// Bounds the memory that is spent on behalf of users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace rtev {

/// A number of bytes, of which one user gets three quarters at the most, and one process a quarter. One thread.
class MemoryBudget {
  struct Share {
    std::size_t bytes = 0, accounts = 0;
  };
  struct State {
    std::size_t limit;
    std::size_t used = 0;
    std::map<std::uint32_t, Share> users{};
    std::map<std::int32_t, Share> processes{};
  };

 public:
  explicit MemoryBudget(std::size_t limit) : state_(std::make_shared<State>(State{.limit = limit})) {}

  /// Bytes that are charged to a process and its user while the object lives, which may be longer than the budget.
  class Account {
   public:
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;
    ~Account() {
      state_->used -= bytes_;
      close(state_->users, user_);
      close(state_->processes, process_);
    }

    /// Charges more. False, and nothing is charged, if that is too much for the process, for the user or in all.
    bool grow(std::size_t bytes) {
      Share &of_user = state_->users[user_], &of_process = state_->processes[process_];
      const std::size_t limit = state_->limit;
      if (state_->used + bytes > limit || of_user.bytes + bytes > limit / 4 * 3 || of_process.bytes + bytes > limit / 4)
        return false;
      for (std::size_t* const sum : {&state_->used, &of_user.bytes, &of_process.bytes, &bytes_}) *sum += bytes;
      return true;
    }

   private:
    friend MemoryBudget;
    Account(std::shared_ptr<State> state, std::uint32_t user, std::int32_t process)
        : state_(std::move(state)), user_(user), process_(process) {
      ++state_->users[user_].accounts;
      ++state_->processes[process_].accounts;
    }
    template <typename Id>
    void close(std::map<Id, Share>& shares, Id owner) const {
      const auto share = shares.find(owner);
      share->second.bytes -= bytes_;
      if (--share->second.accounts == 0) shares.erase(share);
    }

    std::shared_ptr<State> state_;
    std::uint32_t user_;
    std::int32_t process_;
    std::size_t bytes_ = 0;
  };

  /// `process`: its pid.
  std::shared_ptr<Account> open_account(std::uint32_t user, std::int32_t process) const {
    return std::shared_ptr<Account>(new Account(state_, user, process));
  }
  std::size_t used() const { return state_->used; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace rtev
