// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/pause_words.hpp"
#include "analysis/stats_report.hpp"
#include "sinks/escape.hpp"
#include "sinks/units.hpp"

namespace rtev {
namespace {

constexpr std::size_t most_processes = 20, most_user_events = 10;
constexpr std::size_t label_width = 12, narrow = 10, wide = 17;

/// Text in columns: right-aligned, and a mark after figures that are lower bounds.
class Columns {
 public:
  explicit Columns(TextBuffer& out) : out_(out) {}

  void label(std::string_view text) {
    out_.add("  ");
    add_column(out_, text, label_width);
  }
  void title(std::string_view text, std::size_t width) { put(text, width, false); }
  void number(std::uint64_t number, std::size_t width, bool bound) {
    cell_.clear();
    cell_.add_grouped(number);
    put(cell_.text(), width, bound);
  }
  void number(const std::optional<std::uint64_t>& figure, std::size_t width, bool bound) {
    if (figure) {
      number(*figure, width, bound);
    } else {
      put("-", width, false);
    }
  }
  void duration(const std::optional<std::uint64_t>& ns, std::size_t width, bool bound) {
    cell_.clear();
    if (ns) {
      add_duration(cell_, *ns);
    } else {
      cell_.add('-');
    }
    put(cell_.text(), width, bound && ns);
  }
  void share(const std::optional<double>& share, std::size_t width, bool bound) {
    cell_.clear();
    if (share) {
      const auto hundredths = static_cast<std::uint64_t>(std::llround(*share * 1e4));
      cell_.add(hundredths / 100, '.', hundredths / 10 % 10, hundredths % 10, '%');
    } else {
      cell_.add('-');
    }
    put(cell_.text(), width, bound && share);
  }
  void end() {
    pending_ = 0;
    out_.add('\n');
  }

 private:
  void put(std::string_view text, std::size_t width, bool bound) {
    out_.add_repeated(' ', pending_);
    if (const std::size_t columns = columns_of(text); columns + 1 < width) out_.add_repeated(' ', width - 1 - columns);
    out_.add(text);
    if (bound) out_.add('+');
    pending_ = bound ? 0 : 1;  // no blanks at the end of a line
  }

  TextBuffer& out_;
  TextBuffer cell_;
  std::size_t pending_ = 0;
};

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

void add_time_titles(Columns& columns, std::string_view first) {
  columns.label(first);
  for (const std::string_view title : {"WALL", "CPU", "GC", "GC%", "STW LED", "FOLLOWED", "MINOR", "SLICES", "CYCLES"})
    columns.title(title, narrow);
  columns.end();
}

void add_time_row(Columns& columns, std::string_view label, const StatsFigures& figures) {
  const bool bound = figures.missing.any();
  columns.label(label);
  columns.duration(figures.wall_ns, narrow, false);
  columns.duration(figures.cpu_ns, narrow, false);
  columns.duration(figures.gc_ns, narrow, bound);
  columns.share(figures.gc_share(), narrow, bound);
  for (const std::uint64_t count :
       {figures.stw_led, figures.stw_followed, figures.minor_collections, figures.major_slices, figures.major_cycles})
    columns.number(count, narrow, bound);
  columns.end();
}

void add_word_titles(Columns& columns, std::string_view first) {
  columns.label(first);
  for (const std::string_view title : {"MINOR WORDS", "PROMOTED", "MAJOR WORDS"}) columns.title(title, wide);
  for (const std::string_view title : {"USER EVENTS", "EVENTS", "WORDS LOST"}) columns.title(title, narrow + 4);
  columns.end();
}

void add_word_row(Columns& columns, std::string_view label, const StatsFigures& figures) {
  const bool bound = figures.missing.any();
  columns.label(label);
  columns.number(figures.minor_words, wide, bound);
  columns.number(figures.promoted_words, wide, bound);
  columns.number(figures.major_words, wide, bound);
  columns.number(figures.user_events, narrow + 4, bound);
  columns.number(figures.events, narrow + 4, bound);
  columns.number(figures.lost_words, narrow + 4, false);
  columns.end();
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
    out.add(" of cpu time");
  }
  if (process.max_rss_bytes) {
    out.add(", ");
    add_size(out, *process.max_rss_bytes);
    out.add(" of memory at most");
  }
  out.add('\n');
}

void add_heap(TextBuffer& out, const ProcessStats& process) {
  Columns columns{out};
  bool titled = false;
  for (std::size_t i = 0; i < heap_counter_count; ++i) {
    const auto& gauge = process.figures.heap[i];
    if (!gauge) continue;
    if (!std::exchange(titled, true)) {
      out.add("\n  ");
      add_column(out, "HEAP", 2 * label_width + 4);
      for (const std::string_view title : {"LAST", "MAX"}) columns.title(title, wide);
      columns.end();
    }
    out.add("  ");
    std::string_view name = heap_counters()[i];
    name.remove_prefix(std::string_view{"major_heap_"}.size());
    add_column(out, name, 2 * label_width + 4);
    columns.number(gauge->last, wide, false);
    columns.number(gauge->max, wide, process.figures.missing.any());
    columns.end();
  }
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
    if (i >= most_user_events) {
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
  if (!figures.missing.any()) return;
  out.add("  + at least:");
  std::string_view separator = " ";
  if (figures.missing.lost) {
    out.add(separator);
    out.add_grouped(figures.lost_words);
    out.add(figures.lost_words == 1 ? " word of a ring is missing" : " words of rings are missing");
    separator = "; ";
  }
  if (figures.missing.paused) {
    out.add(separator, "the program paused its events");
    separator = "; ";
  }
  if (figures.missing.unfinished) {
    out.add(separator, "the end of a pause was not seen");
    separator = "; ";
  }
  if (figures.missing.before) out.add(separator, "the ring overwrote its past before it was read");
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
  Columns columns{out};
  out.add('\n');
  add_time_titles(columns, "DOMAIN");
  for_rows(process, [&](std::string_view label, const StatsFigures& row) { add_time_row(columns, label, row); });
  out.add('\n');
  add_word_titles(columns, "DOMAIN");
  for_rows(process, [&](std::string_view label, const StatsFigures& row) { add_word_row(columns, label, row); });
  add_heap(out, process);
  add_why_bound(out, figures);
}

void add_total(TextBuffer& out, const StatsReport& report) {
  out.add("all processes\n");
  Columns columns{out};
  add_time_titles(columns, "");
  add_time_row(columns, "", report.total);
  out.add('\n');
  add_word_titles(columns, "");
  add_word_row(columns, "", report.total);
  add_why_bound(out, report.total);
}

}  // namespace

std::string stats_text(const StatsReport& report) {
  TextBuffer out;
  out.add_grouped(report.process_count);
  out.add(report.process_count == 1 ? " OCaml process in " : " OCaml processes in ");
  add_duration(out, report.total.wall_ns);
  out.add('\n');
  const std::size_t shown = std::min(report.processes.size(), most_processes);
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
