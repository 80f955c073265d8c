// SPDX-License-Identifier: MIT
// `stats --full`: a section with all figures of each process.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "analysis/report_text.hpp"
#include "analysis/stats/stats_cells.hpp"
#include "base/folding.hpp"
#include "stream/sink.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_full_processes = 20, max_domain_rows = 64, max_full_user_events = 10;
constexpr std::size_t label_width = 11, counter_width = 24, narrow = 10, wide = 17;

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
  if (count > 0) row(fmt::format("and {} more", Grouped{count}), rest);
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
  const bool bound = figures.phases_bound();
  table.row();
  table.cell(label);
  // Of sums that of all domains, of which GC% is a share.
  add_time(table, figures.domain_time(), false);
  add_time(table, figures.cpu_ns, false);
  add_time(table, figures.of_phases(figures.gc_ns), bound);
  add_share(table, figures.gc_share(), bound);
  for (const auto& count :
       {figures.of_phases(figures.stw_led), figures.of_phases(figures.stw_followed), figures.known_minor_collections(),
        figures.of_phases(figures.major_slices), figures.of_phases(figures.major_cycles)})
    add_number(table, count, bound);
}

TextTable word_table(std::string_view first) {
  TextTable table{2};
  table.column(first, label_width, TextTable::Align::left);
  for (const std::string_view title : {"MINOR WORDS", "PROMOTED", "MAJOR WORDS"}) table.column(title, wide);
  for (const std::string_view title : {"USER EVENTS", "EVENTS", "WORDS LOST"}) table.column(title, narrow + 4);
  return table;
}

void add_word_row(TextTable& table, std::string_view label, const StatsFigures& figures, bool truncated) {
  const bool bound = figures.missing.any();
  table.row();
  table.cell(label);
  add_number(table, figures.known_minor_words(), figures.minor_words_bound());
  add_number(table, figures.of_counters(figures.promoted_words), figures.counters_bound());
  add_number(table, figures.major_words, figures.major_words_lower_bound());
  add_number(table, figures.known_user_events(), bound);
  add_number(table, figures.known_events(), bound);
  add_number(table, figures.known_lost_words(truncated), false);
}

void add_headline(TextBuffer& out, const ProcessStats& process) {
  print(out, "{} {}", process.pid, Escaped{process.comm});
  if (!process.version.empty()) print(out, ", OCaml {}", Escaped{process.version});
  print(out, "{}{}{}", process.figures.wall() ? ", " : ", in ", Duration{process.figures.wall_ns},
        process.ended ? ", ended" : "");
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

/// What major cycles left in the heap, of some cycles if there were many.
void add_live(TextBuffer& out, const Trend& live, std::uint64_t run_ns) {
  if (live.count() == 0) return;
  TextBuffer text;
  text.add("  live after major cycles:");
  for (const Trend::Sample& sample : live.samples()) {
    print(text, "{}{} at {}", sample.time_ns == live.samples().front().time_ns ? " " : ", ", bytes_of(sample.value),
          Duration{sample.time_ns - std::min(sample.time_ns, run_ns)});
  }
  out.add(folded(text.text(), 0, 4), '\n');
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

void add_full_process(TextBuffer& out, const ProcessStats& process, const StatsReport& report) {
  add_headline(out, process);
  const StatsFigures& figures = process.figures;
  if (process.domain_count() == 0) {
    out.add("  no events\n");
    return;
  }
  const bool bound = figures.phases_bound();
  if (figures.missing.phases && figures.minor_collections == 0) {
    out.add("  collections: unknown\n");
  } else {
    out.add("  collections: ");
    if (figures.known_minor_collections()) {
      add_count(out, figures.minor_collections, "minor, ", bound);
    } else {
      out.add("minor unknown, ");
    }
    add_count(out, figures.major_slices, figures.major_slices == 1 ? "major slice, " : "major slices, ", bound);
    add_count(out, figures.major_cycles, figures.major_cycles == 1 ? "major cycle, " : "major cycles, ", bound);
    add_count(out, figures.compactions, figures.compactions == 1 ? "compaction\n" : "compactions\n", bound);
  }
  add_list(out, "  explicit calls", figures.explicit_calls, explicit_phases(), "explicit_gc_", bound);
  add_list(out, "  triggers", figures.triggers, trigger_counters(), "", bound);
  add_user_events(out, process, "  ", max_full_user_events);
  add_buckets(out, process);
  TextTable times = time_table("DOMAIN"), words = word_table("DOMAIN");
  for_domains(process, max_domain_rows, [&](std::string_view label, const StatsFigures& row) {
    add_time_row(times, label, row);
    add_word_row(words, label, row, report.truncated);
  });
  out.add('\n');
  times.write(out);
  out.add('\n');
  words.write(out);
  add_heap(out, process);
  add_live(out, process.live_words, report.run_ns);
  add_user_spans(out, process, 2, SIZE_MAX);
  add_why_bound(out, figures);
}

void add_total(TextBuffer& out, const StatsReport& report) {
  out.add("all processes\n");
  TextTable times = time_table(""), words = word_table("");
  add_time_row(times, "", report.total);
  add_word_row(words, "", report.total, report.truncated);
  times.write(out);
  out.add('\n');
  words.write(out);
  add_why_bound(out, report.total);
}

}  // namespace

void add_sections(TextBuffer& out, const StatsReport& report) {
  const std::size_t shown = std::min(report.processes.size(), max_full_processes);
  for (std::size_t i = 0; i < shown; ++i) {
    out.add('\n');
    add_full_process(out, report.processes[i], report);
  }
  if (report.process_count > shown) {
    print(out, "\nand {} more, with less time in the garbage collector\n", Grouped{report.process_count - shown});
  }
  if (report.process_count > 1) {
    out.add('\n');
    add_total(out, report);
  }
}

}  // namespace rtev
