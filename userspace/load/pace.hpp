// SPDX-License-Identifier: MIT
// When each event is due at a given rate.
#pragma once

#include <cstdint>

namespace rtev::load {

/// Event i is due at start + i/rate. Times are absolute, so that they do not drift and a stall is made up for. Exact
/// for a hundred years and rates up to max_rate. Times in ns.
class Pace {
 public:
  static constexpr std::uint64_t max_rate = 1'000'000'000;
  /// A domain does not wake more often than this: more frequent events come in bursts.
  static constexpr std::uint64_t burst_ns = 500'000;

  /// `rate`: events per second, 1 to max_rate.
  Pace(std::uint64_t start_ns, std::uint64_t rate) : start_ns_(start_ns), rate_(rate) {}

  /// Number of events that are due at a time.
  std::uint64_t due(std::uint64_t now_ns) const {
    if (now_ns < start_ns_) return 0;
    const std::uint64_t elapsed = now_ns - start_ns_;
    return elapsed / second * rate_ + elapsed % second * rate_ / second + 1;
  }

  /// The first time at which event `index`, counted from 0, is due.
  std::uint64_t time_of(std::uint64_t index) const {
    return start_ns_ + index / rate_ * second + (index % rate_ * second + rate_ - 1) / rate_;
  }

  /// When to wake for event `index`. Domains with the same pace wake at the same times.
  std::uint64_t wake(std::uint64_t index) const {
    const std::uint64_t time = time_of(index);
    if (rate_ <= second / burst_ns) return time;
    const std::uint64_t bursts = (time - start_ns_ + burst_ns - 1) / burst_ns;
    return start_ns_ + bursts * burst_ns;
  }

 private:
  static constexpr std::uint64_t second = 1'000'000'000;

  std::uint64_t start_ns_;
  std::uint64_t rate_;
};

}  // namespace rtev::load
