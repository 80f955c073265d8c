// SPDX-License-Identifier: MIT
#include "top/interval_history.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace rtev::top {
namespace {

constexpr std::array<std::string_view, 9> bars{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::size_t levels = bars.size() - 1;

std::size_t pause_level(std::uint64_t ns) {
  constexpr std::array<std::uint64_t, levels - 1> bounds{100'000,    300'000,    1'000'000,  3'000'000,
                                                         10'000'000, 30'000'000, 100'000'000};
  if (ns == 0) return 0;
  return 1 + static_cast<std::size_t>(std::ranges::upper_bound(bounds, ns) - bounds.begin());
}

}  // namespace

void IntervalHistory::add(Interval&& interval) {
  bytes_ += interval.bytes();
  intervals_.push_back(std::move(interval));
  while (bytes_ > max_bytes_ && intervals_.size() > 1) {
    bytes_ -= intervals_.front().bytes();
    intervals_.pop_front();
    ++forgotten_;
  }
}

/// The greatest value of each character, if there is one.
template <typename Value>
std::string IntervalHistory::line(std::size_t number, std::size_t intervals, std::size_t width, Value value) const {
  const std::size_t per_character = (intervals + width - 1) / std::max<std::size_t>(width, 1);
  std::vector<std::optional<std::uint64_t>> values(width);
  for (std::size_t back = 0; back < std::min(width * per_character, number + 1); ++back) {
    std::optional<std::uint64_t>& greatest = values[width - 1 - back / per_character];
    if (const std::optional<std::uint64_t> one = value(intervals_[number - back]))
      greatest = std::max(greatest.value_or(0), *one);
  }
  std::uint64_t least = UINT64_MAX, most = 0;
  for (const auto& one : values) {
    if (!one) continue;
    least = std::min(least, *one);
    most = std::max(most, *one);
  }
  std::string text;
  for (const auto& one : values) text += bars[one ? value.level(*one, least, most) : 0];
  return text;
}

std::string IntervalHistory::pauses_line(const ProcessFigures& row, std::size_t number, std::size_t intervals,
                                         std::size_t width) const {
  struct WorstPause {
    const ProcessFigures& row;
    std::optional<std::uint64_t> operator()(const Interval& interval) const {
      if (row.index != 0) {
        const ProcessFigures* const figures = interval.find(row.index);
        return figures != nullptr ? std::optional(figures->worst_ns) : std::nullopt;
      }
      // The program may have had a row for each process then.
      std::optional<std::uint64_t> worst_ns;
      for (const ProcessFigures& process : interval.processes)
        if (process.program == row.program) worst_ns = std::max(worst_ns.value_or(0), process.worst_ns);
      return worst_ns;
    }
    static std::size_t level(std::uint64_t ns, std::uint64_t /*least*/, std::uint64_t /*most*/) {
      return pause_level(ns);
    }
  };
  return line(number, intervals, width, WorstPause{row});
}

std::string IntervalHistory::heap_line(ProcessIndex process, std::size_t number, std::size_t intervals,
                                       std::size_t width) const {
  struct HeapSize {
    ProcessIndex process;
    std::optional<std::uint64_t> operator()(const Interval& interval) const {
      const ProcessFigures* const figures = interval.find(process);
      return figures != nullptr ? figures->heap_bytes : std::nullopt;
    }
    static std::size_t level(std::uint64_t bytes, std::uint64_t least, std::uint64_t most) {
      if (most == least) return 1;
      const double share = static_cast<double>(bytes - least) / static_cast<double>(most - least);
      return 1 + static_cast<std::size_t>(share * (levels - 1));
    }
  };
  return line(number, intervals, width, HeapSize{process});
}

}  // namespace rtev::top
