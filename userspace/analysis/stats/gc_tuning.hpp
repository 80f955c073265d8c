// SPDX-License-Identifier: MIT
// What the figures of `stats` say about the parameters s (minor heap) and o (space_overhead) of OCAMLRUNPARAM.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/stats/stats_report.hpp"
#include "base/json_writer.hpp"
#include "base/text_buffer.hpp"

namespace rtev {

/// Nothing where the data does not say it.
struct GcTuning {
  /// The size of a minor heap in words: known if a collection found one full, and if it is a power of two.
  std::optional<std::uint64_t> minor_heap_words{};
  std::uint64_t fullest_minor_words = 0;  ///< the most that a collection found in one
  std::uint64_t domains = 0;              ///< the most that allocated at a time are not known: all, by number
  std::uint16_t busiest_domain = 0;       ///< the one that allocated most
  double allocation_per_second = 0;       ///< bytes, of the busiest domain
  double collections_per_second = 0;      ///< minor ones
  std::optional<double> survival{};       ///< of what was allocated in minor heaps, 0 to 1

  std::optional<std::uint64_t> live_bytes{};  ///< after the last major cycle
  std::optional<std::uint64_t> heap_bytes{};  ///< at the end
  double cycles_per_second = 0;               ///< major ones
  std::optional<double> major_cpu_share{};    ///< of slices in the cpu time of the process, 0 to 1

  /// How often the busiest domain fills a minor heap of so many words in a second.
  double fills_per_second(std::uint64_t words) const;
};

GcTuning gc_tuning_of(const ProcessStats& process);

/// The size of a minor heap in words, if the most that a collection found in it says so.
std::optional<std::uint64_t> minor_heap_of(std::uint64_t fullest_words);
/// A number of words as in OCAMLRUNPARAM: "256k".
std::string heap_parameter(std::uint64_t words);

/// A section for each of the processes with most GC time, at most ten lines long.
void add_gc_tuning(TextBuffer& out, const StatsReport& report);

/// The member "gc_tuning".
void add_gc_tuning(JsonWriter& json, const ProcessStats& process);

}  // namespace rtev
