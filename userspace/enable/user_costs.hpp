// SPDX-License-Identifier: MIT
// What the programs of each user cost the process that switches events on.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/cpu_share.hpp"

namespace rtev::enable {

/// Each user has a share of the process's time, and of directories of rings that do not answer: each of these costs a
/// second, and a child process that hangs. One thread; times are ns of CLOCK_MONOTONIC.
class UserCosts {
 public:
  /// After so many directories that did not answer the user's programs are left alone.
  static constexpr int max_unanswered = 8;

  /// As long as it exists, what this thread does is charged to this user. Only one at a time.
  class Charge {
   public:
    Charge(UserCosts& costs, std::uint32_t user);
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;
    ~Charge();

   private:
    UserCosts& costs_;
    std::uint32_t user_;
    std::uint64_t begin_ns_, begin_cpu_ns_;
    int begin_unanswered_;
  };

  /// Of `wall_ns` the process was at work for `cpu_ns`; this often it had no answer.
  void add(std::uint32_t user, std::uint64_t cpu_ns, std::uint64_t wall_ns, int unanswered, std::uint64_t now_ns);

  bool has_time_for(std::uint32_t user, std::uint64_t now_ns) const;
  /// How much of the time that the user has used is not paid for yet: the user's share has to pass first.
  std::uint64_t unpaid_ns(std::uint32_t user, std::uint64_t now_ns) const;
  /// How often a directory of the user did not answer lately.
  int unanswered(std::uint32_t user) const;
  /// Forgets what did not answer, after a time that is longer each time: others may have kept it from answering.
  void forget(std::uint32_t user, std::uint64_t now_ns);
  /// Directories of the user that did not answer.
  std::set<std::string>& silent_directories(std::uint32_t user) { return by_user_[user].silent; }

 private:
  static constexpr std::uint64_t first_memory_ns = 5'000'000'000, last_memory_ns = 3'600'000'000'000;

  struct Cost {
    CpuShare time{10, 500'000'000};
    std::set<std::string> silent{};
    int unanswered = 0;
    std::uint64_t forget_ns = 0;                ///< when the last two are forgotten
    std::uint64_t memory_ns = first_memory_ns;  ///< for how long they are remembered after the last one
  };

  std::map<std::uint32_t, Cost> by_user_;
};

}  // namespace rtev::enable
