// SPDX-License-Identifier: MIT
// What the lines of the brief format do not show one by one, summed up by program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stream/losses.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// Sums of one second. Memory is bounded: beyond its limits programs and names of spans are summed up together.
class BriefSums {
 public:
  void add_pause(ProcessIndex process, std::uint64_t ns) { of(process).pauses.add(ns); }
  void add_span(ProcessIndex process, std::string_view name, std::uint64_t ns);
  void add_stall(ProcessIndex process, std::uint64_t ns) { of(process).stalls.add(ns); }
  /// A user event that is no span.
  void add_value(ProcessIndex process) { ++of(process).values; }
  void add_loss(ProcessIndex process, const Loss& loss) { of(process).lost.add(loss); }

  struct Line {
    std::string program;  ///< "server/42", escaped
    std::string text;     ///< "38 pauses, 60.1ms in all, longest 0.9ms; 3 × \"request\", longest 9ms"
    bool has_loss;
  };
  /// At most so many lines, those of the programs with most time first. Begins anew.
  std::vector<Line> take(std::size_t max_lines, const Registry& registry);

 private:
  static constexpr std::size_t max_programs = 1024, max_names = 16, max_shown_names = 3;

  /// How many, and how long.
  struct Tally {
    std::uint64_t count = 0, total_ns = 0, longest_ns = 0;

    void add(std::uint64_t ns) { *this += {.count = 1, .total_ns = ns, .longest_ns = ns}; }
    Tally& operator+=(const Tally& other);
  };
  struct Sums {
    Tally pauses{}, stalls{};
    std::map<std::string, Tally, std::less<>> spans{};  ///< by name
    Tally other_spans{};                                ///< there was no room for their names
    std::uint64_t values = 0;
    LostWords lost{};

    Sums& operator+=(const Sums& other);
    Tally& span(std::string_view name);
  };

  Sums& of(ProcessIndex process);
  static std::string text_of(const Sums& sums);

  std::map<ProcessIndex, Sums> sums_;
  Sums others_{};
};

}  // namespace rtev
