// SPDX-License-Identifier: MIT
// Long pauses, to be sent as spans: few at a time, whatever programs do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rtev {

/// Times are CLOCK_MONOTONIC in ns. Texts are printable.
struct PauseSpan {
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::string group{}, service{}, version{};
  std::string program{};  ///< comm
  std::int32_t pid = 0;
  std::uint16_t domain = 0;
  std::string kind{};     ///< as the label of the metric
  std::string verdict{};  ///< what to blame for it, a sentence
};

/// Takes at most `per_minute` spans a minute of all groups, and holds `max_held`. One thread.
class PauseSpans {
 public:
  static constexpr std::uint64_t per_minute = 60;
  static constexpr std::size_t max_held = 256;

  /// True if there is room for one that ends at this time; it is counted otherwise.
  bool wants(std::uint64_t time_ns) {
    constexpr std::uint64_t minute_ns = 60'000'000'000;
    if (time_ns >= minute_begin_ns_ + minute_ns) {
      minute_begin_ns_ = time_ns;
      in_minute_ = 0;
    }
    if (in_minute_ < per_minute && held_.size() < max_held) return true;
    ++left_out_;
    return false;
  }
  void add(PauseSpan span) {
    ++in_minute_;
    held_.push_back(std::move(span));
  }
  std::vector<PauseSpan> take() { return std::exchange(held_, {}); }
  /// For which there was no room.
  std::uint64_t left_out() const { return left_out_; }

 private:
  std::vector<PauseSpan> held_;
  std::uint64_t minute_begin_ns_ = 0, in_minute_ = 0, left_out_ = 0;
};

}  // namespace rtev
