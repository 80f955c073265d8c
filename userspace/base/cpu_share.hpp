// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

namespace rtev {

/// How much CPU time something may use: a share of all time, and a little more at once. What it uses beyond that has to
/// pass before it may use more.
class CpuShare {
 public:
  /// One part in `divisor` of all time; `at_once_ns` of CPU time are always left after a pause.
  constexpr CpuShare(std::uint64_t divisor, std::uint64_t at_once_ns)
      : divisor_(divisor), window_ns_(at_once_ns * divisor) {}

  bool has_left(std::uint64_t now_ns) const { return used_until_ns_ < now_ns + window_ns_; }
  /// From when on it has something left, if nothing is used meanwhile.
  std::uint64_t next_ns() const { return used_until_ns_ - std::min(used_until_ns_, window_ns_) + 1; }
  /// How long it takes until all that was used is paid for.
  std::uint64_t unpaid_ns(std::uint64_t now_ns) const { return used_until_ns_ - std::min(used_until_ns_, now_ns); }
  bool is_unused(std::uint64_t now_ns) const { return used_until_ns_ <= now_ns; }
  void use(std::uint64_t cpu_ns, std::uint64_t now_ns) {
    used_until_ns_ = std::max(used_until_ns_, now_ns) + cpu_ns * divisor_;
  }

 private:
  std::uint64_t divisor_, window_ns_;
  std::uint64_t used_until_ns_ = 0;  ///< when all that was used is paid for
};

}  // namespace rtev
