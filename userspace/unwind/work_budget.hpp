// SPDX-License-Identifier: MIT
// A limit of the CPU time for work on a file whose owner chose how much there is to do.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace rtev {

/// CPU time of the calling thread, from the construction on. One thread.
class WorkBudget {
 public:
  static constexpr std::uint64_t unlimited = UINT64_MAX;

  explicit WorkBudget(std::uint64_t cpu_ns)
      : end_ns_(cpu_ns == unlimited ? unlimited : thread_cpu_ns() + cpu_ns), is_used_up_(cpu_ns == 0) {}

  /// False once the time is used up. To be called for each entry, which takes a microsecond or so: looks at the clock
  /// now and then only.
  bool has_left() {
    constexpr std::uint32_t calls_of_a_look = 256;
    if (++calls_ % calls_of_a_look == 0) look();
    return !is_used_up_;
  }
  /// The same, at this moment: to be called before work that does not ask in between.
  bool has_left_now() {
    look();
    return !is_used_up_;
  }
  /// As of the last call of one of the others.
  bool is_used_up() const { return is_used_up_; }

 private:
  void look() { is_used_up_ = is_used_up_ || (end_ns_ != unlimited && thread_cpu_ns() >= end_ns_); }

  std::uint64_t end_ns_;
  std::uint32_t calls_ = 0;
  bool is_used_up_;
};

}  // namespace rtev
