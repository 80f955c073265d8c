// SPDX-License-Identifier: MIT
#include "analysis/stats/stats_cells.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "analysis/report_text.hpp"
#include "base/escape.hpp"
#include "base/folding.hpp"
#include "base/saturating_sum.hpp"

namespace rtev {

void add_number(TextTable& table, const std::optional<std::uint64_t>& number, bool bound) {
  if (number) {
    table.cell(*number, bound);
  } else {
    table.cell("-");
  }
}

void add_words(TextTable& table, const std::optional<std::uint64_t>& words, bool bound) {
  table.cell(words ? fmt::format("{}", bytes_of(*words)) : "-", bound && words);
}

void add_time(TextTable& table, const std::optional<std::uint64_t>& ns, bool bound) {
  table.cell(ns ? fmt::format("{}", Duration{*ns}) : "-", bound && ns);
}

void add_share(TextTable& table, const std::optional<double>& share, bool bound) {
  if (share) {
    const auto hundredths = std::llround(*share * 1e4);
    table.cell(fmt::format("{}.{:02}%", hundredths / 100, hundredths % 100), bound);
  } else {
    table.cell("-");
  }
}

void add_count(TextBuffer& out, std::uint64_t count, std::string_view what, bool bound) {
  print(out, "{}{} {}", Grouped{count}, bound ? "+" : "", what);
}

void add_list(TextBuffer& out, std::string_view title, std::span<const std::uint64_t> figures,
              std::span<const std::string_view> names, std::string_view prefix, bool bound) {
  std::string_view separator;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (figures[i] == 0) continue;
    if (separator.empty()) print(out, "{}: ", title);
    std::string_view name = names[i];
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    out.add(separator);
    add_count(out, figures[i], name, bound);
    separator = ", ";
  }
  if (!separator.empty()) out.add('\n');
}

void add_user_events(TextBuffer& out, const ProcessStats& process, std::string_view indent, std::size_t most) {
  std::uint64_t rest = process.other_user_events;
  if (process.user_events.empty() && rest == 0) return;
  out.add(indent, "user events: ");
  std::string_view separator;
  std::size_t listed = 0;
  for (const UserEventStats& user : process.user_events) {
    if (listed++ >= most) {
      rest = saturating_sum(rest, user.count);
      continue;
    }
    print(out, "{}{}{} ", separator, Grouped{user.count}, process.figures.missing.any() ? "+" : "");
    if (user.name.empty()) {
      print(out, "#{}", user.id);
    } else {
      add_quoted(out, user.name);
    }
    separator = ", ";
  }
  if (rest > 0) print(out, "{}{} more", separator, Grouped{rest});
  out.add('\n');
}

std::size_t span_count(const ProcessStats& process) {
  return static_cast<std::size_t>(std::ranges::count_if(
      process.user_events, [](const UserEventStats& user) { return user.durations.count() > 0; }));
}

void add_user_spans(TextBuffer& out, const ProcessStats& process, std::size_t indent, std::size_t most) {
  std::vector<const UserEventStats*> spans;
  for (const UserEventStats& user : process.user_events)
    if (user.durations.count() > 0) spans.push_back(&user);
  if (spans.empty()) return;
  std::ranges::sort(spans, [](const UserEventStats* a, const UserEventStats* b) {
    return std::pair{b->durations.total(), a->id} < std::pair{a->durations.total(), b->id};
  });
  constexpr std::size_t name_width = 24;
  TextTable table{indent};
  table.column("SPAN", name_width, TextTable::Align::left);
  for (const std::string_view title : {"COUNT", "MEAN", "P99", "MAX", "TOTAL", "TIME%"}) table.column(title, 10);
  for (std::size_t i = 0; i < std::min(spans.size(), most); ++i) {
    const UserEventStats& span = *spans[i];
    table.row();
    table.cell(span.name.empty() ? fmt::format("#{}", span.id) : cut_middle(escaped(span.name), name_width));
    const bool bound = process.figures.missing.any();
    table.cell(span.durations.count(), bound);
    for (const auto& ns : {std::optional(static_cast<std::uint64_t>(span.durations.mean())),
                           span.durations.known_percentile(99), std::optional(span.durations.max())})
      table.duration(ns);
    add_time(table, span.durations.total(), bound);
    // As GC%: events of a process may be on for a part of its time only, and its domains have spans at the same time.
    const auto of_ns = process.figures.domain_time();
    table.cell(of_ns ? fmt::format("{}", Percent{span.durations.total(), *of_ns}) : "-", bound && of_ns);
  }
  if (spans.size() > most) table.line(fmt::format("and {} more names with less time", spans.size() - most));
  out.add('\n');
  table.write(out);
}

std::string stopped_cycles_text(const ProcessStats& process) {
  const MajorCycles& cycles = process.cycles;
  return fmt::format(
      "the last one ended {} before the end; until then they came at most {} apart; since then the heap grew from {} "
      "to "
      "{}",
      Duration{process.since_cycle_ns().value_or(0)}, Duration{cycles.longest_gap_ns},
      bytes_of(cycles.heap_words_at_last), bytes_of(process.heap_words.last()));
}

void add_why_bound(TextBuffer& out, const StatsFigures& figures, bool major) {
  major &= figures.major_words_lower_bound();
  const bool minor = figures.lacks_minor_words && figures.known_minor_words();
  if (!figures.missing.any() && !minor && !major) return;
  TextBuffer line;
  std::string_view separator = "  + lower bound: ";
  const auto because = [&](std::string_view why) {
    print(line, "{}{}", separator, why);
    separator = "; ";
  };
  if (figures.missing.lost)
    because(fmt::format("{} lost", Counted{figures.lost_words, "ring word was", "ring words were"}));
  if (figures.missing.unprobed) because("tracing by probes paused");
  if (figures.missing.paused) because("the program paused its events");
  if (figures.missing.unfinished) because("the end of a pause was not seen");
  if (figures.missing.before) because("the ring was partly overwritten before it was read");
  if (figures.missing.unread) because("not all events were read");
  if (figures.missing.ignored) because("too many domains at once: phases were ignored");
  if (figures.missing.merged) because("too many domains for --memory-limit: collections were not counted to the end");
  if (minor) because("what domains allocated that never collected is unknown");
  if (major) because("MAJOR WORDS lacks allocations after the last slice of a domain");
  out.add(folded(line.text(), 0, 4), '\n');
}

}  // namespace rtev
