// SPDX-License-Identifier: MIT
// The intervals of a run, the newest last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "top/interval.hpp"

namespace rtev::top {

/// Memory is bounded: the oldest intervals go. One thread.
class IntervalHistory {
 public:
  explicit IntervalHistory(std::size_t max_bytes = std::size_t{64} << 20) : max_bytes_(max_bytes) {}

  void add(Interval&& interval);

  bool empty() const { return intervals_.empty(); }
  std::size_t size() const { return intervals_.size(); }
  /// Intervals that went, for lack of memory.
  std::size_t forgotten() const { return forgotten_; }
  const Interval& operator[](std::size_t number) const { return intervals_[number]; }

  /// The last `intervals` intervals until `number`, a character for each or for as many as it takes to fit `width`: the
  /// longest pause, on a scale that is the same for all: see pause_scale. Blank: no pause. Right-aligned.
  std::string pauses_line(const ProcessFigures& row, std::size_t number, std::size_t intervals,
                          std::size_t width) const;
  /// The same of the size of the heap, between the least and the greatest of this time.
  std::string heap_line(ProcessIndex process, std::size_t number, std::size_t intervals, std::size_t width) const;

 private:
  template <typename Value>
  std::string line(std::size_t number, std::size_t intervals, std::size_t width, Value value) const;

  std::size_t max_bytes_, bytes_ = 0, forgotten_ = 0;
  std::deque<Interval> intervals_;
};

/// What the characters of pauses_line() mean.
inline constexpr const char* pause_scale = "▁ <0.1ms  ▂ <0.3ms  ▃ <1ms  ▄ <3ms  ▅ <10ms  ▆ <30ms  ▇ <100ms  █ longer";

}  // namespace rtev::top
