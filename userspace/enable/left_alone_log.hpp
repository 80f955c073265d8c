// SPDX-License-Identifier: MIT
// What is logged of users whose programs are left alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rtev::enable {

/// Who starts programs all the time would fill the log of the host. So the first program of a user is named, and those
/// after it are counted: a line a minute. One thread; times are ns of CLOCK_MONOTONIC.
class LeftAloneLog {
 public:
  static constexpr std::uint64_t interval_ns = 60'000'000'000;

  /// One more. True if it is to be named.
  bool add(std::uint32_t user, std::uint64_t now_ns);
  /// When take_due() has something.
  std::optional<std::uint64_t> next_ns() const;
  /// A line for each user of whom some were counted for long enough.
  std::vector<std::string> take_due(std::uint64_t now_ns);
  /// For each user of whom some were counted.
  std::vector<std::string> take_all();

 private:
  struct OfUser {
    std::uint64_t begin_ns = 0;  ///< of the minute
    std::uint64_t count = 0;
  };

  std::map<std::uint32_t, OfUser> by_user_;
};

}  // namespace rtev::enable
