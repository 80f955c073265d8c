// SPDX-License-Identifier: MIT
// What the texts of `stats` have in common: the screen, and the sections of --full.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analysis/stats/stats_report.hpp"
#include "base/text_format.hpp"
#include "base/text_table.hpp"

namespace rtev {

/// Of words of a heap, which have 8 bytes.
inline Size bytes_of(std::uint64_t words) {
  return {words > UINT64_MAX / 8 ? UINT64_MAX : words * 8};
}

/// Cells with "-" for what is not known; `bound`: a lower bound, marked by a +.
void add_number(TextTable& table, const std::optional<std::uint64_t>& number, bool bound);
void add_words(TextTable& table, const std::optional<std::uint64_t>& words, bool bound);  ///< as bytes
void add_time(TextTable& table, const std::optional<std::uint64_t>& ns, bool bound);
void add_share(TextTable& table, const std::optional<double>& share, bool bound);

/// "1,234+ minor"
void add_count(TextBuffer& out, std::uint64_t count, std::string_view what, bool bound);

/// "title: 3 first, 2 second" in a line, without zeros; nothing if all are zero.
void add_list(TextBuffer& out, std::string_view title, std::span<const std::uint64_t> figures,
              std::span<const std::string_view> names, std::string_view prefix, bool bound);

/// "user events: 12 "request", 3 more" in a line; nothing if there are none.
void add_user_events(TextBuffer& out, const ProcessStats& process, std::string_view indent, std::size_t most);

/// How many of its user events are spans with a duration.
std::size_t span_count(const ProcessStats& process);

/// A table of these spans by name, those with most time first, after an empty line; nothing if there are none.
void add_user_spans(TextBuffer& out, const ProcessStats& process, std::size_t indent, std::size_t most);

/// "the last one ended 2.00s before the end; ...": of a process whose major cycles have stopped.
std::string stopped_cycles_text(const ProcessStats& process);

/// Why figures are lower bounds. `major`: MAJOR WORDS are shown.
void add_why_bound(TextBuffer& out, const StatsFigures& figures, bool major = true);

/// A section with all figures of each process.
void add_sections(TextBuffer& out, const StatsReport& report);

}  // namespace rtev
