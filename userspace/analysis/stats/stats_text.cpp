// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "analysis/report_text.hpp"
#include "analysis/stats/stats_report.hpp"
#include "base/text_table.hpp"

namespace rtev {
namespace {

/// Rows of the default report, which fits a terminal of 24 lines and 100 columns.
constexpr std::size_t max_rows = 12;
/// Of the full report.
constexpr std::size_t max_processes = 20, max_domains = 64, max_user_events = 10;
constexpr std::string_view more = "and ";  ///< begins the label of rows of others
constexpr std::size_t label_width = 11, comm_width = 15, counter_width = 24, narrow = 10, wide = 17;

/// A number, or "-" if there is none.
void add_number(TextTable& table, const std::optional<std::uint64_t>& number, bool bound) {
  if (number) {
    table.cell(*number, bound);
  } else {
    table.cell("-");
  }
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

/// Calls row(label, figures) for the domains with most time in the garbage collector, by number; then for the sum of
/// the others, and for the sum of all.
template <typename Row>
void for_domains(const ProcessStats& process, std::size_t max, Row&& row) {
  std::vector<const DomainStats*> domains;
  domains.reserve(process.domains.size());
  for (const DomainStats& domain : process.domains) domains.push_back(&domain);
  const auto shown = domains.begin() + static_cast<std::ptrdiff_t>(std::min(domains.size(), max));
  if (shown != domains.end()) {
    std::ranges::nth_element(domains, shown, std::ranges::greater{}, [](const DomainStats* domain) {
      return std::pair{domain->figures.gc_ns, domain->figures.events};
    });
    std::sort(domains.begin(), shown, [](const DomainStats* a, const DomainStats* b) {
      return std::pair{a->domain, a->incarnation} < std::pair{b->domain, b->incarnation};
    });
  }
  for (auto domain = domains.begin(); domain != shown; ++domain)
    row(fmt::format("{}", DomainName{(*domain)->domain, (*domain)->incarnation}), (*domain)->figures);
  StatsFigures rest = process.other_domains;
  for (auto domain = shown; domain != domains.end(); ++domain) rest += (*domain)->figures;
  const std::uint64_t count = process.other_domain_count + static_cast<std::uint64_t>(domains.end() - shown);
  if (count > 0) row(fmt::format("{}{} more", more, Grouped{count}), rest);
  if (process.domain_count() > 1) row("all", process.figures);
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

/// "  title: 3 first, 2 second", without zeros.
template <std::size_t count>
void add_list(TextBuffer& out, std::string_view title, const std::array<std::uint64_t, count>& figures,
              std::span<const std::string_view> names, std::string_view prefix, bool bound) {
  std::string_view separator;
  for (std::size_t i = 0; i < count; ++i) {
    if (figures[i] == 0) continue;
    if (separator.empty()) print(out, "  {}: ", title);
    std::string_view name = names[i];
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    out.add(separator);
    add_count(out, figures[i], name, bound);
    separator = ", ";
  }
  if (!separator.empty()) out.add('\n');
}

void add_headline(TextBuffer& out, const ProcessStats& process) {
  print(out, "{} {}", process.pid, Escaped{process.comm});
  if (!process.version.empty()) print(out, ", OCaml {}", Escaped{process.version});
  print(out, ", {}{}", Duration{process.figures.wall_ns}, process.ended ? ", ended" : "");
  if (process.figures.cpu_ns)
    print(out, ", {}{} of CPU time", Duration{*process.figures.cpu_ns}, process.lacks_cpu_time() ? "+" : "");
  if (process.max_rss_bytes) print(out, ", {} of memory at most", Size{*process.max_rss_bytes});
  out.add('\n');
}

/// The total is reported by slices, its parts at the end of cycles: they need not add up.
void add_heap(TextBuffer& out, const ProcessStats& process) {
  TextTable table{2};
  table.column("HEAP", counter_width, TextTable::Align::left).column("UPDATED", 0, TextTable::Align::left);
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
    print(out, "  {}", least);
    if (i >= 10 && i + 1 < alloc_bucket_count) print(out, "-{}", least + 9);
    if (i + 1 == alloc_bucket_count) out.add('+');
    print(out, ": {}", Grouped{count});
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
    print(out, "{}{}{} ", separator, Grouped{user.count}, process.figures.missing.any() ? "+" : "");
    if (user.name.empty()) {
      print(out, "#{}", user.id);
    } else {
      add_quoted(out, user.name);
    }
    separator = ", ";
  }
  if (rest > 0) print(out, ", {} others", Grouped{rest});
  out.add('\n');
}

/// `major`: MAJOR WORDS are shown.
void add_why_bound(TextBuffer& out, const StatsFigures& figures, bool major = true) {
  major &= figures.major_words_lower_bound();
  if (!figures.missing.any() && !major) return;
  std::string_view separator = "  + lower bound: ";
  const auto because = [&](std::string_view why) {
    print(out, "{}{}", separator, why);
    separator = "; ";
  };
  if (figures.missing.lost)
    because(fmt::format("{} lost", Counted{figures.lost_words, "ring word was", "ring words were"}));
  if (figures.missing.paused) because("the program paused its events");
  if (figures.missing.unfinished) because("the end of a pause was not seen");
  if (figures.missing.before) because("the ring was partly overwritten before it was read");
  if (figures.missing.merged) because("too many domains for --memory-limit: collections were not counted to the end");
  if (major) because("MAJOR WORDS lacks allocations after the last slice of a domain");
  out.add('\n');
}

void add_process(TextBuffer& out, const ProcessStats& process) {
  add_headline(out, process);
  const StatsFigures& figures = process.figures;
  if (process.domain_count() == 0) {
    out.add("  no events\n");
    return;
  }
  const bool bound = figures.missing.any();
  out.add("  collections: ");
  add_count(out, figures.minor_collections, "minor, ", bound);
  add_count(out, figures.major_slices, figures.major_slices == 1 ? "major slice, " : "major slices, ", bound);
  add_count(out, figures.major_cycles, figures.major_cycles == 1 ? "major cycle, " : "major cycles, ", bound);
  add_count(out, figures.compactions, figures.compactions == 1 ? "compaction\n" : "compactions\n", bound);
  add_list(out, "explicit calls", figures.explicit_calls, explicit_phases(), "explicit_gc_", bound);
  add_list(out, "triggers", figures.triggers, trigger_counters(), "", bound);
  add_user_events(out, process);
  add_buckets(out, process);
  TextTable times = time_table("DOMAIN"), words = word_table("DOMAIN");
  for_domains(process, max_domains, [&](std::string_view label, const StatsFigures& row) {
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

void add_sections(TextBuffer& out, const StatsReport& report) {
  const std::size_t shown = std::min(report.processes.size(), max_processes);
  for (std::size_t i = 0; i < shown; ++i) {
    out.add('\n');
    add_process(out, report.processes[i]);
  }
  if (report.process_count > shown) {
    print(out, "\nand {} more, with less time in the garbage collector\n", Grouped{report.process_count - shown});
  }
  if (report.process_count > 1) {
    out.add('\n');
    add_total(out, report);
  }
}

/// Rows of others have no pid, and no WALL: they were there at different times.
void add_short_row(TextTable& table, std::string_view pid, std::string_view comm, std::string_view domain,
                   const StatsFigures& figures) {
  const bool bound = figures.missing.any(), is_rest = pid.empty() && comm.starts_with(more);
  table.row();
  table.cell(pid);
  table.cell(comm);
  table.cell(domain);
  add_time(table, is_rest ? std::nullopt : std::optional{figures.wall_ns}, false);
  add_time(table, figures.cpu_ns, false);
  add_time(table, figures.gc_ns, bound);
  add_share(table, figures.gc_share(), bound);
  table.cell(figures.minor_collections, bound);
  table.cell(figures.major_cycles, bound);
  for (const std::uint64_t words : {figures.minor_words, figures.promoted_words})
    table.cell(fmt::format("{}", Size{words > UINT64_MAX / 8 ? UINT64_MAX : words * 8}), bound);
}

/// A row for each process; for each domain if there is only one process.
void add_short_table(TextBuffer& out, const StatsReport& report) {
  if (report.process_count == 0) return;
  TextTable table;
  table.column("PID", 7).column("COMM", comm_width, TextTable::Align::left).column("DOM", 5);
  for (const std::string_view title : {"WALL", "CPU", "GC", "GC%"}) table.column(title, 8);
  for (const std::string_view title : {"MINOR", "CYCLES", "ALLOC", "PROMOTED"}) table.column(title, 8);
  const auto add = [&](const ProcessStats& process, std::string_view domain, const StatsFigures& figures) {
    TextBuffer comm;
    add_column(comm, process.comm, comm_width);
    add_short_row(table, std::to_string(process.pid), comm.text(), domain, figures);
  };
  if (report.process_count == 1 && report.processes.size() == 1) {
    const ProcessStats& process = report.processes.front();
    if (process.domain_count() == 0) add(process, "0", process.figures);
    for_domains(process, max_rows, [&](std::string_view label, const StatsFigures& figures) {
      const bool others = label.starts_with(more);
      others ? add_short_row(table, "", label, "", figures) : add(process, label, figures);
    });
  } else {
    const std::size_t shown = std::min(report.processes.size(), max_rows);
    StatsFigures rest = report.other_processes;
    for (std::size_t i = 0; i < report.processes.size(); ++i) {
      const ProcessStats& process = report.processes[i];
      if (i < shown) {
        add(process, fmt::format("{}", Grouped{process.domain_count()}), process.figures);
      } else {
        rest += process.figures;
      }
    }
    if (report.process_count > shown)
      add_short_row(table, "", fmt::format("{}{} more", more, Grouped{report.process_count - shown}), "", rest);
    add_short_row(table, "", "all", "", report.total);
  }
  out.add('\n');
  table.write(out);
  add_why_bound(
      out, report.process_count == 1 && !report.processes.empty() ? report.processes.front().figures : report.total,
      false);
}

}  // namespace

std::string stats_text(const StatsReport& report, bool full) {
  TextBuffer out;
  print(out, "{} in {}\n", Counted{report.process_count, "OCaml process", "OCaml processes"},
        Duration{report.total.wall_ns});
  if (full) {
    add_sections(out, report);
  } else {
    add_short_table(out, report);
  }
  if (report.switches_dropped > 0) {
    print(out, "warning: CPU times are lower bounds: the kernel dropped {}\n",
          Counted{report.switches_dropped, "context switch", "context switches"});
  }
  if (report.rings_missed > 0) {
    print(out, "warning: {} could not be read; events are missing\n", Counted{report.rings_missed, "ring", "rings"});
  }
  if (report.ignored_events > 0) {
    print(out, "warning: too many domains: {} ignored; figures of collections are lower bounds\n",
          Counted{report.ignored_events, "phase was", "phases were"});
  }
  return std::string{out.text()};
}

}  // namespace rtev
