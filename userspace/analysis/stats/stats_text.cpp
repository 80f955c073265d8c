// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "analysis/pauses/pause_words.hpp"
#include "analysis/stats/stats_report.hpp"
#include "base/escape.hpp"
#include "base/text_table.hpp"
#include "base/units.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_processes = 20, max_user_events = 10;
constexpr std::size_t label_width = 11, counter_width = 24, narrow = 10, wide = 17;

/// A number, or "-" where there is none.
void add_number(TextTable& table, const std::optional<std::uint64_t>& number, bool bound) {
  if (number) {
    table.cell(*number, bound);
  } else {
    table.cell("-");
  }
}

void add_time(TextTable& table, const std::optional<std::uint64_t>& ns, bool bound) {
  TextBuffer text;
  if (ns) {
    add_duration(text, *ns);
  } else {
    text.add('-');
  }
  table.cell(text.text(), bound && ns);
}

void add_share(TextTable& table, const std::optional<double>& share, bool bound) {
  TextBuffer text;
  if (share) {
    const auto hundredths = static_cast<std::uint64_t>(std::llround(*share * 1e4));
    text.add(hundredths / 100, '.', hundredths / 10 % 10, hundredths % 10, '%');
  } else {
    text.add('-');
  }
  table.cell(text.text(), bound && share);
}

void add_count(TextBuffer& out, std::uint64_t count, std::string_view what, bool bound) {
  out.add_grouped(count);
  if (bound) out.add('+');
  out.add(' ', what);
}

std::string label_of(const DomainStats& domain) {
  TextBuffer label;
  label.add(domain.domain);
  add_incarnation(label, domain.incarnation);
  return std::string{label.text()};
}

/// Calls row(label, figures) for each domain, for those that are not told apart, and for their sum.
template <typename Row>
void for_rows(const ProcessStats& process, Row&& row) {
  for (const DomainStats& domain : process.domains) row(label_of(domain), domain.figures);
  if (process.other_domain_count > 0)
    row("and " + std::to_string(process.other_domain_count) + " more", process.other_domains);
  if (process.domains.size() + process.other_domain_count > 1) row("all", process.figures);
}

TextTable time_table(std::string_view first) {
  TextTable table{2};
  table.column(first, label_width, TextTable::Align::left);
  for (const std::string_view title : {"WALL", "CPU", "GC", "GC%", "STW LED", "FOLLOWED", "MINOR", "SLICES", "CYCLES"})
    table.column(title, narrow);
  return table;
}

void add_time_row(TextTable& table, std::string_view label, const StatsFigures& figures) {
  const bool bound = figures.missing.any();
  table.row();
  table.cell(label);
  add_time(table, figures.wall_ns, false);
  add_time(table, figures.cpu_ns, false);
  add_time(table, figures.gc_ns, bound);
  add_share(table, figures.gc_share(), bound);
  for (const std::uint64_t count :
       {figures.stw_led, figures.stw_followed, figures.minor_collections, figures.major_slices, figures.major_cycles})
    table.cell(count, bound);
}

TextTable word_table(std::string_view first) {
  TextTable table{2};
  table.column(first, label_width, TextTable::Align::left);
  for (const std::string_view title : {"MINOR WORDS", "PROMOTED", "MAJOR WORDS"}) table.column(title, wide);
  for (const std::string_view title : {"USER EVENTS", "EVENTS", "WORDS LOST"}) table.column(title, narrow + 4);
  return table;
}

void add_word_row(TextTable& table, std::string_view label, const StatsFigures& figures) {
  const bool bound = figures.missing.any();
  table.row();
  table.cell(label);
  table.cell(figures.minor_words, bound);
  table.cell(figures.promoted_words, bound);
  add_number(table, figures.major_words, figures.major_words_lower_bound());
  table.cell(figures.user_events, bound);
  table.cell(figures.events, bound);
  table.cell(figures.lost_words);
}

/// "  title: 3 first, 2 second", of those that are not zero.
template <std::size_t count>
void add_list(TextBuffer& out, std::string_view title, const std::array<std::uint64_t, count>& figures,
              std::span<const std::string_view> names, std::string_view prefix, bool bound) {
  std::string_view separator;
  for (std::size_t i = 0; i < count; ++i) {
    if (figures[i] == 0) continue;
    if (separator.empty()) out.add("  ", title, ": ");
    std::string_view name = names[i];
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    out.add(separator);
    add_count(out, figures[i], name, bound);
    separator = ", ";
  }
  if (!separator.empty()) out.add('\n');
}

void add_headline(TextBuffer& out, const ProcessStats& process) {
  out.add(process.pid, ' ');
  add_escaped(out, process.comm);
  if (!process.version.empty()) {
    out.add(", OCaml ");
    add_escaped(out, process.version);
  }
  out.add(", ");
  add_duration(out, process.figures.wall_ns);
  if (process.ended) out.add(", ended");
  if (process.figures.cpu_ns) {
    out.add(", ");
    add_duration(out, *process.figures.cpu_ns);
    out.add(process.lacks_cpu_time() ? "+ of cpu time" : " of cpu time");
  }
  if (process.max_rss_bytes) {
    out.add(", ");
    add_size(out, *process.max_rss_bytes);
    out.add(" of memory at most");
  }
  out.add('\n');
}

/// The total comes with slices and its parts with the ends of cycles: they need not add up.
void add_heap(TextBuffer& out, const ProcessStats& process) {
  TextTable table{2};
  table.column("HEAP", counter_width, TextTable::Align::left).column("TOLD AT", 0, TextTable::Align::left);
  for (const std::string_view title : {"LAST", "MAX"}) table.column(title, wide);
  bool any = false;
  for (std::size_t i = 0; i < heap_counter_count; ++i) {
    const auto& gauge = process.figures.heap[i];
    if (!gauge) continue;
    any = true;
    std::string_view name = heap_counters()[i];
    const bool total = name == "major_heap_words";
    name.remove_prefix(std::string_view{"major_heap_"}.size());
    table.row();
    table.cell(name);
    table.cell(total ? "slices" : "cycles");
    table.cell(gauge->last);
    table.cell(gauge->max, process.figures.missing.any());
  }
  if (!any) return;
  out.add('\n');
  table.write(out);
}

void add_buckets(TextBuffer& out, const ProcessStats& process) {
  if (!process.alloc_buckets) return;
  out.add("  blocks allocated by size in words:");
  for (std::size_t i = 0; i < alloc_bucket_count; ++i) {
    const std::uint64_t count = (*process.alloc_buckets)[i];
    if (count == 0) continue;
    const std::size_t least = i < 10 ? i : (i - 9) * 10;
    out.add("  ", least);
    if (i >= 10 && i + 1 < alloc_bucket_count) out.add('-', least + 9);
    if (i + 1 == alloc_bucket_count) out.add('+');
    out.add(": ");
    out.add_grouped(count);
  }
  out.add('\n');
}

void add_user_events(TextBuffer& out, const ProcessStats& process) {
  if (process.user_events.empty()) return;
  out.add("  user events: ");
  std::uint64_t rest = process.other_user_events;
  std::string_view separator;
  for (std::size_t i = 0; i < process.user_events.size(); ++i) {
    const UserEventStats& user = process.user_events[i];
    if (i >= max_user_events) {
      rest = saturating_sum(rest, user.count);
      continue;
    }
    out.add(separator);
    out.add_grouped(user.count);
    out.add(process.figures.missing.any() ? "+ " : " ");
    if (user.name.empty()) {
      out.add('#', user.id);
    } else {
      add_quoted(out, user.name);
    }
    separator = ", ";
  }
  if (rest > 0) {
    out.add(", ");
    out.add_grouped(rest);
    out.add(" others");
  }
  out.add('\n');
}

void add_why_bound(TextBuffer& out, const StatsFigures& figures) {
  if (!figures.missing.any() && !figures.major_words_lower_bound()) return;
  std::string_view separator = "  + at least: ";
  const auto because = [&](std::string_view why) {
    out.add(separator, why);
    separator = "; ";
  };
  if (figures.missing.lost) {
    because("");
    out.add_grouped(figures.lost_words);
    out.add(figures.lost_words == 1 ? " word of a ring is missing" : " words of rings are missing");
  }
  if (figures.missing.paused) because("the program paused its events");
  if (figures.missing.unfinished) because("the end of a pause was not seen");
  if (figures.missing.before) because("the ring overwrote its past before it was read");
  if (figures.major_words_lower_bound()) because("what a domain allocated behind its last slice is not in MAJOR WORDS");
  out.add('\n');
}

void add_process(TextBuffer& out, const ProcessStats& process) {
  add_headline(out, process);
  const StatsFigures& figures = process.figures;
  if (process.domains.empty() && process.other_domain_count == 0) {
    out.add("  no events\n");
    return;
  }
  const bool bound = figures.missing.any();
  out.add("  collections: ");
  add_count(out, figures.minor_collections, "minor, ", bound);
  add_count(out, figures.major_slices, figures.major_slices == 1 ? "major slice, " : "major slices, ", bound);
  add_count(out, figures.major_cycles, figures.major_cycles == 1 ? "major cycle, " : "major cycles, ", bound);
  add_count(out, figures.compactions, figures.compactions == 1 ? "compaction\n" : "compactions\n", bound);
  add_list(out, "asked for by the program", figures.explicit_calls, explicit_phases(), "explicit_gc_", bound);
  add_list(out, "triggers", figures.triggers, trigger_counters(), "", bound);
  add_user_events(out, process);
  add_buckets(out, process);
  TextTable times = time_table("DOMAIN"), words = word_table("DOMAIN");
  for_rows(process, [&](std::string_view label, const StatsFigures& row) {
    add_time_row(times, label, row);
    add_word_row(words, label, row);
  });
  out.add('\n');
  times.write(out);
  out.add('\n');
  words.write(out);
  add_heap(out, process);
  add_why_bound(out, figures);
}

void add_total(TextBuffer& out, const StatsReport& report) {
  out.add("all processes\n");
  TextTable times = time_table(""), words = word_table("");
  add_time_row(times, "", report.total);
  add_word_row(words, "", report.total);
  times.write(out);
  out.add('\n');
  words.write(out);
  add_why_bound(out, report.total);
}

}  // namespace

std::string stats_text(const StatsReport& report) {
  TextBuffer out;
  out.add_grouped(report.process_count);
  out.add(report.process_count == 1 ? " OCaml process in " : " OCaml processes in ");
  add_duration(out, report.total.wall_ns);
  out.add('\n');
  const std::size_t shown = std::min(report.processes.size(), max_processes);
  for (std::size_t i = 0; i < shown; ++i) {
    out.add('\n');
    add_process(out, report.processes[i]);
  }
  if (report.process_count > shown) {
    out.add("\nand ");
    out.add_grouped(report.process_count - shown);
    out.add(" more, with less time in the garbage collector or ended long ago\n");
  }
  if (report.process_count > 1) {
    out.add('\n');
    add_total(out, report);
  }
  if (report.switches_dropped > 0) {
    out.add("\n!! cpu times are lower bounds: the kernel's buffers dropped ");
    out.add_grouped(report.switches_dropped);
    out.add(report.switches_dropped == 1 ? " switch of threads\n" : " switches of threads\n");
  }
  if (report.rings_missed > 0) {
    out.add("\n!! not here: ");
    out.add_grouped(report.rings_missed);
    out.add(report.rings_missed == 1 ? " ring that a process announced" : " rings that processes announced");
    out.add(" and that could not be read\n");
  }
  if (report.ignored_events > 0) {
    out.add("\n!! not followed: ");
    out.add_grouped(report.ignored_events);
    out.add(report.ignored_events == 1 ? " phase" : " phases");
    out.add(" of more domains than can be followed at once: figures of collections are at least what is said\n");
  }
  return std::string{out.text()};
}

}  // namespace rtev
