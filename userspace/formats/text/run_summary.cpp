// SPDX-License-Identifier: MIT
#include "formats/text/run_summary.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>
#include <utility>
#include <vector>

#include "base/text_format.hpp"
#include "formats/text/run_warnings.hpp"
#include "stream/losses.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_rows = 20;

struct Total {
  std::uint64_t processes = 0;
  std::uint64_t programs = 0;  ///< that they ran: some ran several
  Accounting words;
};

Total total_of(const Registry& registry) {
  return {.processes = registry.process_count(),
          .programs = registry.others().count + registry.others().replaced +
                      static_cast<std::uint64_t>(std::ranges::distance(registry.processes())),
          .words = words_of_all(registry)};
}

/// How the headline ends. `is_lacking`: lines that say more follow.
void add_lacks(TextBuffer& out, std::vector<Lack> lacks, bool is_lacking) {
  constexpr std::size_t max_lacks = 3;
  const std::size_t count = lacks.size();
  if (!is_lacking) {
    out.add(", nothing lost, nothing dropped");
    if (count > 0) print(out, "; {}", lacks_text(lacks));
  } else if (count > 0) {
    lacks.resize(std::min(count, max_lacks));
    print(out, "; missing: {}", lacks_text(lacks));
    if (count > max_lacks) print(out, " and {}", Counted{count - max_lacks, "other kind", "other kinds"});
  }
  out.add('\n');
}

void add_headline(TextBuffer& out, const RunSummary& summary, const Total& total) {
  const std::uint64_t events = std::accumulate(summary.events.begin(), summary.events.end(), std::uint64_t{0});
  print(out, "{} of {}", Counted{events, "event", "events"},
        Counted{total.processes, "OCaml process", "OCaml processes"});
  if (summary.start_ns != 0 && summary.end_ns > summary.start_ns)
    print(out, " in {}", Duration{summary.end_ns - summary.start_ns});
}

std::string_view version_of(const ProcessInfo& info) {
  if (info.runtime != ocaml_runtime) return info.runtime;
  if (!info.version.empty()) return info.version;
  return info.family_source == FamilySource::assumed ? "?" : to_string(info.family);
}

/// Execs seen: distinguishes the images of one pid.
constexpr std::size_t exec_width = 6;

/// Columns that most runs do not need, and whether figures are known: a recording without its end has those of events.
struct Columns {
  bool execs, unread, truncated;
  std::size_t name_width;
};

/// "1,234"; "1,234+" if more may be missing, and "?" if none is known of.
std::string count_text(std::uint64_t count, bool truncated) {
  if (!truncated) return fmt::format("{}", Grouped{count});
  return count == 0 ? "?" : fmt::format("{}+", Grouped{count});
}

void add_row(TextBuffer& out, const ProcessInfo& info, const Columns& columns) {
  print(out, "{:>7}", info.pid);
  if (columns.execs) print(out, "{:>{}}", Grouped{info.exec_generation}, exec_width);
  out.add(' ');
  add_column(out, info.name, columns.name_width);
  out.add(' ');
  add_column(out, version_of(info), 7);
  const Accounting& words = info.words;
  const auto known = [&](std::uint64_t count) { return count_text(count, columns.truncated); };
  print(out, "{:>4} {:>14} {:>14} {:>12} {:>12} {:>12}",
        info.domains == 0 && !columns.truncated ? "-" : known(info.domains), Grouped{words.events},
        known(words.delivered), known(words.lost), known(words.before_attach), known(words.corrupt));
  if (columns.unread) print(out, " {:>12}", known(words.unread));
  if (info.ring == RingState::unreadable) out.add("  ring not read");
  out.add('\n');
}

bool lacks_words(const ProcessInfo& info) {
  return info.words.lost > 0 || info.words.corrupt > 0 || info.words.unread > 0 || info.ring == RingState::unreadable;
}

/// The rows that are shown: those with most events. If there is no room for all, those that lack words come first.
std::vector<const ProcessInfo*> rows_of(const Registry& registry) {
  std::vector<const ProcessInfo*> rows;
  for (const ProcessInfo& info : registry.processes()) rows.push_back(&info);
  const bool is_full = rows.size() > max_rows;
  const auto shown = std::min(rows.size(), max_rows);
  std::ranges::partial_sort(
      rows, rows.begin() + static_cast<std::ptrdiff_t>(shown), std::ranges::greater{},
      [&](const ProcessInfo* info) { return std::pair{is_full && lacks_words(*info), info->words.events}; });
  rows.resize(shown);
  return rows;
}

/// The processes without a row.
void add_rest(TextBuffer& out, const Total& total, const std::vector<const ProcessInfo*>& rows) {
  if (total.programs == rows.size()) return;
  Accounting shown;
  for (const ProcessInfo* const info : rows) shown += info->words;
  print(out, "        and {} more, with {}", Grouped{total.programs - rows.size()},
        Counted{total.words.events - shown.events, "event", "events"});
  for (const auto& [figure, what] : {std::pair{&Accounting::lost, "lost"}, std::pair{&Accounting::corrupt, "corrupt"},
                                     std::pair{&Accounting::unread, "unread"}}) {
    if (const std::uint64_t rest = total.words.*figure - shown.*figure; rest > 0)
      print(out, ", {} {}", Counted{rest, "word", "words"}, what);
  }
  out.add('\n');
}

void add_table(TextBuffer& out, const Registry& registry, const Total& total, bool truncated) {
  if (total.processes == 0) return;
  const std::vector<const ProcessInfo*> rows = rows_of(registry);
  const Columns columns{
      .execs = std::ranges::any_of(rows, [](const ProcessInfo* info) { return info->exec_generation > 0; }),
      .unread = total.words.unread > 0,
      .truncated = truncated,
      .name_width = std::ranges::max(rows | std::views::transform([](const ProcessInfo* info) {
                                       return std::max<std::size_t>(info->name.size(), 15);
                                     }))};
  print(out, "\n{:>7}{:>{}} {:<{}} RUNTIME{:>4}{:>15}{:>15}{:>13}{:>13}{:>13}{:>{}}\n", "PID",
        columns.execs ? "EXECS" : "", columns.execs ? exec_width : 0, "COMM", columns.name_width, "DOM", "EVENTS",
        "WORDS", "LOST", "BEFORE", "CORRUPT", columns.unread ? "UNREAD" : "", columns.unread ? 13 : 0);
  for (const ProcessInfo* const info : rows) add_row(out, *info, columns);
  add_rest(out, total, rows);
  out.add('\n');
}

void add_events(TextBuffer& out, const RunSummary& summary) {
  std::string_view separator = "events:  ";
  for (std::size_t kind = 0; kind < event_kind_count; ++kind) {
    if (summary.events[kind] == 0) continue;
    print(out, "{}{} {}", separator, to_string(static_cast<EventKind>(kind)), Grouped{summary.events[kind]});
    separator = ", ";
  }
  if (separator == ", ") out.add('\n');
}

void add_late(TextBuffer& out, const RunSummary& summary) {
  if (summary.late > 0)
    print(out, "late:    {} arrived after events with a later time\n", Counted{summary.late, "event", "events"});
}

void add_own_cost(TextBuffer& out, const RunSummary& summary) {
  const std::uint64_t events = std::accumulate(summary.events.begin(), summary.events.end(), std::uint64_t{0});
  print(out, "tracer:  {} of CPU time", Duration{summary.own_cpu_ns});
  // The cost of a short run is mostly that of starting.
  constexpr std::uint64_t min_events = 100'000;
  if (events >= min_events) {
    const double per_million = static_cast<double>(summary.own_cpu_ns) * 1e6 / static_cast<double>(events);
    print(out, " ({} per million events)", Duration{static_cast<std::uint64_t>(std::min(per_million, 1e18))});
  }
  print(out, ", {} of memory at most\n", Size{summary.own_max_rss_bytes});
}

}  // namespace

std::string summary_text(const RunSummary& summary, const Registry& registry, bool full, const OutputFacts& output) {
  TextBuffer out, warnings;
  const Total total = total_of(registry);
  const bool is_lacking = add_warnings(warnings, summary, registry, total.words, output);
  add_headline(out, summary, total);
  add_lacks(out, lacks_of(summary, registry), is_lacking);
  if (!is_lacking && !full) return std::string{out.text()};
  add_table(out, registry, total, !summary.complete);
  add_events(out, summary);
  out.add(warnings.text());
  add_late(out, summary);
  if (summary.complete && summary.own_cpu_ns != 0) add_own_cost(out, summary);
  return std::string{out.text()};
}

}  // namespace rtev
