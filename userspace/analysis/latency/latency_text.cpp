// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <functional>
#include <ranges>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/latency/latency_figures.hpp"
#include "analysis/report_text.hpp"
#include "analysis/utilization/utilization_report.hpp"
#include "base/folding.hpp"
#include "base/text_table.hpp"
#include "stream/program_key.hpp"

namespace rtev {
namespace {

constexpr std::size_t pid_width = 7, least_comm_width = 15 + 2, percentile_width = 12;
/// Rows of the default report, which fits a terminal.
constexpr std::size_t max_latency_rows = 10;

std::uint64_t rounded(double ns) {
  return static_cast<std::uint64_t>(std::llround(ns));
}

class LatencyText {
 public:
  LatencyText(const LatencyReport& report, bool full) : report_(report), full_(full) {}

  std::string text() {
    if (report_.is_unknown()) {
      const std::string what = report_.not_recorded.text({EventKind::begin});
      const std::string why = what.empty() ? why_none_read(report_.read_programs) : what;
      out_.add(folded(fmt::format("{} are unknown: {}", many(), why), 0, 2), '\n');
      add_lacks(out_, report_.lacks);
      return std::string{out_.text()};
    }
    headline();
    if (full_) {
      warnings();
      add_utilization_table(out_, report_.utilization, report_.run_ns, report_.run_realtime_ns);
      blocks();
    } else {
      table();
      warnings();
    }
    return std::string{out_.text()};
  }

  std::string sentences() {
    headline();
    return std::string{out_.text()};
  }

 private:
  void headline() {
    const LatencyFigures& all = report_.all;
    TextBuffer line;
    const std::string_view bound = at_least(report_.lower_bound());
    print(line, "{}{} ", bound, Grouped{all.wall.count()});
    if (report_.phase.empty()) {
      line.add(all.wall.count() == 1 ? "GC pause" : "GC pauses");
    } else {
      print(line, "{} of {}", all.wall.count() == 1 ? "span" : "spans", Escaped{report_.phase});
    }
    if (report_.min_ns > 0) print(line, " of {} and longer", Duration{report_.min_ns});
    line.add(" of ");
    if (is_single()) {
      append(line, ProcessName{report_.processes.front().comm, report_.processes.front().pid});
    } else {
      const std::uint64_t with_pauses = report_.processes.size();
      // Those of the others may have had pauses, too.
      const bool is_partial = !is_one_program() && report_.other_domains == 0;
      const std::uint64_t all_processes = is_partial ? std::max(with_pauses, report_.process_count) : with_pauses;
      if (with_pauses > 0 && with_pauses < all_processes) print(line, "{} of ", Grouped{with_pauses});
      append(line, Counted{all_processes, "process", "processes"});
      if (is_one_program()) print(line, " of {}", Escaped{report_.processes.front().comm});
    }
    if (report_.other_domains > 0)
      print(line, " and {}", Counted{report_.other_domains, "more domain", "more domains"});
    print(line, " in {}", Duration{report_.end_ns - report_.start_ns});
    if (all.wall.count() > 0) {
      if (is_single() || is_one_program()) {
        print(line, ": {}the longest {}{}", usual_text(all.wall), bound, Duration{all.wall.max()});
      } else {
        print(line, "; the longest {}{}", bound, Duration{all.wall.max()});
        const auto worst = std::ranges::max_element(
            report_.processes, {}, [](const LatencyReport::Process& process) { return process.figures.wall.max(); });
        if (worst != report_.processes.end() && worst->figures.wall.max() == all.wall.max())
          print(line, " of {}", ProcessName{worst->comm, worst->pid});
      }
      print(line, ", at {}", WhenOf{all.longest_begin_ns, report_.run_ns, report_.run_realtime_ns});
    }
    out_.add(folded(line.text(), 0, 0), '\n');
    if (is_single() && !full_) where_time_went(all);
    if (all.wall.count() > 0 && !full_) add_utilization_line(out_, report_.utilization);
  }

  bool is_one_program() const {
    return report_.others.empty() && report_.processes.size() > max_single_processes && grouped().size() == 1;
  }
  bool is_single() const { return report_.processes.size() == 1 && report_.others.empty(); }

  void where_time_went(const LatencyFigures& figures) {
    const TimeSplit& time = figures.split;
    if (!report_.scheduler_seen || figures.wall.total() == 0 || time.is_unknown()) return;
    const std::uint64_t whole = figures.wall.total(), waited = time.runnable + time.blocked();
    TextBuffer line;
    std::string_view separator;
    for (const auto& [name, ns] : {std::pair{"on a CPU", time.on_cpu},
                                   {"runnable", time.runnable},
                                   {"blocked", time.blocked()},
                                   {"unknown", time.unknown}}) {
      if (ns == 0) continue;
      print(line, "{}{} {}{}", separator, name, Percent{ns, whole, time.unknown > 0},
            separator.empty() ? " of that time" : "");
      separator = ", ";
    }
    if (report_.phase.empty() && waited > whole / 2) line.add(": mostly waiting (rtev-bpf pauses says for what)");
    if (report_.phase.empty() && time.on_cpu > whole / 2) line.add(": mostly work");
    out_.add(folded(line.text(), 0, 2), '\n');
  }

  void warnings() {
    TextBuffer text;
    if (report_.lower_bound()) lower_bounds(text);
    add_lacks(text, report_.lacks);
    if (const std::uint64_t open = unfinished(Unfinished::ended); open > 0) {
      print(text, "{} open when the domain or the {} ended and {} not counted\n",
            Counted{open, report_.phase.empty() ? "pause was" : "span was",
                    report_.phase.empty() ? "pauses were" : "spans were"},
            report_.truncated ? "recording" : "run", open == 1 ? "is" : "are");
    }
    if (!report_.scheduler_seen && report_.all.wall.count() > 0) {
      text.add("no scheduler events: it is unknown whether threads ran or waited\n");
    } else {
      add_unknown_time(text, report_.all.split.unknown, report_.all.wall.total(), many(), report_.not_recorded,
                       report_.lacks, report_.scheduler_dropped);
    }
    add_line(text, why_some_unread(report_.read_programs));
    add_own_share(text, report_.own, report_.end_ns - report_.start_ns);
    add_lines(out_, text.text());
  }

  void lower_bounds(TextBuffer& text) {
    std::string_view separator = "warning: lower bounds only: ";
    const auto add = [&](std::uint64_t count, std::string_view singular, std::string_view plural,
                         std::string_view what) {
      if (count == 0) return;
      print(text, "{}{}{}", separator, Counted{count, singular, plural}, what);
      separator = ", ";
    };
    if (!lacks_events(report_.lacks)) {
      add(report_.all.lost_words, "word", "words", " of rings lost");
      add(report_.all.unprobed, "gap", "gaps", " while probes were off");
    }
    add(report_.words_before, "word", "words", " overwritten before the ring was read");
    add(report_.ignored_events, "phase", "phases", " ignored (too many domains)");
    add(unfinished(Unfinished::lost), one(), many(), " cut by losses");
    add(unfinished(Unfinished::no_end), one(), many(), " with no end seen");
    add(unfinished(Unfinished::clock), one(), many(), " with a clock that went backwards");
    if (separator != ", ") text.add("warning: lower bounds only, as events are missing");
    print(text, "\n  counts and totals are at least this high; {} of unknown length are not counted\n", many());
  }

  std::uint64_t unfinished(Unfinished reason) const { return report_.all.unfinished[static_cast<std::size_t>(reason)]; }
  std::string_view one() const { return report_.phase.empty() ? "pause" : "span"; }
  std::string_view many() const { return report_.phase.empty() ? "pauses" : "spans"; }

  /// All figures of one distribution.
  void block(std::string_view title, const LatencyFigures& figures) {
    const Histogram& wall = figures.wall;
    out_.add('\n', title, figures.lower_bound() ? " !\n" : "\n");
    print(out_, "  count {}", Grouped{wall.count()});
    if (wall.count() > 0) {
      for (const auto& [name, ns] : {std::pair{"total", wall.total()}, std::pair{"mean", rounded(wall.mean())},
                                     std::pair{"stddev", rounded(wall.standard_deviation())},
                                     std::pair{"min", wall.min()}, std::pair{"max", wall.max()}}) {
        print(out_, "  {} {}", name, Duration{ns});
      }
    }
    if (figures.below_min > 0) print(out_, "  shorter {}", Grouped{figures.below_min});
    out_.add('\n');
    if (wall.count() > 0) percentiles(figures);
  }

  void percentiles(const LatencyFigures& figures) {
    const bool split = report_.scheduler_seen;
    const bool any_split = split && figures.on_cpu.count() > 0;
    TextTable table;
    table.column("PERCENTILE", percentile_width).column("WALL", duration_width + 1);
    if (any_split) {
      for (const std::string_view title : {"ON-CPU", "RUNNABLE", "BLOCKED"}) table.column(title, duration_width + 1);
    }
    std::uint64_t unknown = 0;
    for (const double percentile : latency_percentiles) {
      if (!figures.wall.known_percentile(percentile)) {
        ++unknown;
        continue;
      }
      table.row();
      table.cell(fmt::format("{:.4f}", percentile));  // as olly prints them
      table.duration(figures.wall.known_percentile(percentile));
      if (any_split) {
        for (const Histogram* part : {&figures.on_cpu, &figures.runnable, &figures.blocked})
          table.duration(part->known_percentile(percentile));
      }
    }
    if (unknown > 0)
      table.line(fmt::format("  too few {} for {}", many(), Counted{unknown, "more percentile", "more percentiles"}));
    if (split) total(table, figures, any_split);
    table.write(out_);
  }

  void total(TextTable& table, const LatencyFigures& figures, bool any_split) const {
    const TimeSplit& time = figures.split;
    table.row();
    table.cell("total");
    table.duration(figures.wall.total());
    if (any_split) {
      for (const std::uint64_t ns : {time.on_cpu, time.runnable, time.blocked()}) table.duration(ns);
    }
    if (time.unknown == 0) return;
    TextBuffer rest;
    print(rest, "unknown: {} in {} of the {}", Duration{time.unknown},
          Grouped{figures.wall.count() - figures.on_cpu.count()}, many());
    table.remark(rest.text());
  }

  void blocks() {
    if (!is_single()) block("all processes", report_.all);
    for (const LatencyReport::Process& process : report_.processes) {
      TextBuffer title;
      append(title, ProcessName{process.comm, process.pid});
      block(title.text(), process.figures);
      if (process.domains.size() == 1) continue;
      for (const LatencyReport::Domain& domain : process.domains) {
        TextBuffer part;
        print(part, "{}, domain {}", title.text(), domain.domain);
        if (domain.incarnations > 1) print(part, " ({} incarnations)", domain.incarnations);
        block(part.text(), domain.figures);
      }
    }
    if (!report_.others.empty()) block("others", report_.others);
  }

  /// A row for each process; for each domain if there is only one process.
  void table() {
    if (report_.all.empty()) return;
    TextTable table;
    table.column("PID", pid_width)
        .column("COMM", least_comm_width, TextTable::Align::left)
        .column("DOM", 5)
        .column("COUNT", 7);
    for (const std::string_view title : {"TOTAL", "P50", "P99", "P99.9", "MAX"}) table.column(title, 8);
    if (report_.scheduler_seen) {
      for (const std::string_view title : {"ONCPU", "RUNBL", "BLOCK"}) table.column(title, 0);
    }
    if (is_single()) {
      domain_rows(table, report_.processes.front());
    } else {
      process_rows(table);
    }
    out_.add('\n');
    table.write(out_);
  }

  struct Row {
    const LatencyReport::Process* first;
    std::uint64_t processes = 1;
    std::size_t domains;
    LatencyFigures figures;
  };

  /// Programs with many processes have one. Those with most time come first.
  std::vector<Row> grouped() const {
    std::unordered_map<std::string, std::uint64_t> processes;
    for (const LatencyReport::Process& process : report_.processes) ++processes[program_key(process.exe, process.comm)];
    std::unordered_map<std::string, std::size_t> together;
    std::vector<Row> rows;
    for (const LatencyReport::Process& process : report_.processes) {
      const std::string key = program_key(process.exe, process.comm);
      const auto [place, is_first] = together.try_emplace(key, rows.size());
      if (is_first || report_.by_process || processes[key] <= max_single_processes) {
        rows.push_back({.first = &process, .domains = process.domains.size(), .figures = process.figures});
      } else {
        Row& row = rows[place->second];
        ++row.processes;
        row.domains += process.domains.size();
        row.figures.merge(process.figures);
      }
    }
    std::ranges::stable_sort(rows, std::greater{}, [](const Row& row) { return row.figures.wall.total(); });
    return rows;
  }

  void process_rows(TextTable& table) const {
    const std::vector<Row> rows = grouped();
    const std::size_t shown = std::min(rows.size(), max_latency_rows);
    for (const Row& of : rows | std::views::take(shown)) {
      const std::string pid =
          of.processes > 1 ? fmt::format("x{}", Grouped{of.processes}) : std::to_string(of.first->pid);
      row(table, pid, of.first->comm, fmt::format("{}", Grouped{of.domains}), of.figures);
    }
    LatencyFigures rest = report_.others;
    for (const Row& of : rows | std::views::drop(shown)) rest.merge(of.figures);
    if (rest.empty()) return;
    table.row();
    table.cell();
    table.cell("others");
    table.cell();
    figures(table, rest);
  }

  /// Those with most time in pauses, by number; then all.
  void domain_rows(TextTable& table, const LatencyReport::Process& process) const {
    std::vector<const LatencyReport::Domain*> domains;
    domains.reserve(process.domains.size());
    for (const LatencyReport::Domain& domain : process.domains) domains.push_back(&domain);
    const std::size_t shown = std::min(domains.size(), max_latency_rows);
    std::ranges::sort(domains, [](const LatencyReport::Domain* a, const LatencyReport::Domain* b) {
      return std::pair{b->figures.wall.total(), a->domain} < std::pair{a->figures.wall.total(), b->domain};
    });
    LatencyFigures rest;
    for (std::size_t i = shown; i < domains.size(); ++i) rest.merge(domains[i]->figures);
    const std::size_t others = domains.size() - shown;
    domains.resize(shown);
    std::ranges::sort(domains, {}, &LatencyReport::Domain::domain);
    for (const LatencyReport::Domain* const domain : domains)
      row(table, std::to_string(process.pid), process.comm, std::to_string(domain->domain), domain->figures);
    if (others > 0) {
      table.row();
      table.cell();
      table.cell(fmt::format("and {} more", Grouped{others}));
      table.cell();
      figures(table, rest);
    }
    if (process.domains.size() > 1) row(table, std::to_string(process.pid), process.comm, "all", process.figures);
  }

  void row(TextTable& table, std::string_view pid, std::string_view comm, std::string_view domain,
           const LatencyFigures& of) const {
    table.row();
    table.cell(pid);
    table.cell(escaped(comm));
    table.cell(domain);
    figures(table, of);
  }

  void figures(TextTable& table, const LatencyFigures& of) const {
    const Histogram& wall = of.wall;
    table.cell(wall.count());
    if (wall.count() > 0) {
      table.duration(wall.total());
      for (const double percentile : {50.0, 99.0, 99.9}) table.duration(wall.known_percentile(percentile));
      table.duration(wall.max());
      if (report_.scheduler_seen) {
        const TimeSplit& time = of.split;
        for (const std::uint64_t ns : {time.on_cpu, time.runnable, time.blocked()}) {
          const auto [share, is_bound] = known_share(ns, wall.total(), time.unknown);
          table.cell(share, is_bound);
        }
      }
    }
    if (of.lower_bound()) table.remark("!");
  }

  const LatencyReport& report_;
  const bool full_;
  TextBuffer out_;
};

}  // namespace

std::string latency_text(const LatencyReport& report, bool full) {
  return LatencyText{report, full}.text();
}

std::string latency_sentences(const LatencyReport& report) {
  return LatencyText{report, false}.sentences();
}

}  // namespace rtev
