// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <string>

#include "analysis/latency/latency_figures.hpp"
#include "base/text_format.hpp"
#include "base/text_table.hpp"

namespace rtev {
namespace {

constexpr std::size_t pid_width = 7, comm_width = 15, domain_width = 4, count_width = 12, duration_width = 9,
                      share_width = 6, percentile_width = 12;
constexpr std::size_t max_processes = 20, max_domains = 16;

std::uint64_t whole(double ns) {
  return static_cast<std::uint64_t>(std::llround(ns));
}

/// "12.3%" of the whole.
std::string share(std::uint64_t part, std::uint64_t of) {
  if (of == 0) return "-";
  const auto per_mille = whole(static_cast<double>(part) / static_cast<double>(of) * 1000);
  return fmt::format("{}.{}%", per_mille / 10, per_mille % 10);
}

class Report {
 public:
  Report(const LatencyReport& report, bool full) : report_(report), full_(full) {}

  std::string text() {
    headline();
    warnings();
    block("all processes", report_.all);
    if (report_.span != LatencyReport::Span::so_far) {
      if (full_) {
        blocks();
      } else {
        table();
      }
    }
    return std::string{out_.text()};
  }

 private:
  void headline() {
    if (report_.phase.empty()) {
      out_.add("GC pauses");
    } else {
      print(out_, "spans of {}", Escaped{report_.phase});
    }
    if (report_.min_ns > 0) print(out_, " of {} and longer", Duration{report_.min_ns});
    print(out_, ": {} of {}", Grouped{report_.all.wall.count()},
          Counted{report_.processes.size(), "process", "processes"});
    if (report_.other_domains > 0)
      print(out_, " and {}", Counted{report_.other_domains, "more domain", "more domains"});
    if (report_.span == LatencyReport::Span::interval) {
      out_.add(", from ");
      add_seconds(out_, report_.start_ns, report_.run_ns, 0);
      out_.add(" to ");
      add_seconds(out_, report_.end_ns, report_.run_ns, 0);
      out_.add(" s\n");
    } else {
      print(out_, "{} in {}\n", report_.span == LatencyReport::Span::so_far ? " so far," : "",
            Duration{report_.end_ns - report_.start_ns});
    }
  }

  void warnings() {
    if (report_.lower_bound()) lower_bounds();
    if (const std::uint64_t open = unfinished(Unfinished::ended); open > 0) {
      print(out_, "{} open when the domain or the run ended and {} not counted\n",
            Counted{open, report_.phase.empty() ? "pause was" : "span was",
                    report_.phase.empty() ? "pauses were" : "spans were"},
            open == 1 ? "is" : "are");
    }
    if (report_.scheduler_dropped > 0) {
      print(out_, "warning: the kernel dropped {}; affected time is shown as unknown\n",
            Counted{report_.scheduler_dropped, "scheduler event", "scheduler events"});
    }
    if (!report_.scheduler_seen && report_.all.wall.count() > 0)
      out_.add("no scheduler events: it is unknown whether threads ran or waited\n");
  }

  void lower_bounds() {
    std::string_view separator = "warning: lower bounds only: ";
    const auto add = [&](std::uint64_t count, std::string_view singular, std::string_view plural,
                         std::string_view what) {
      if (count == 0) return;
      print(out_, "{}{}{}", separator, Counted{count, singular, plural}, what);
      separator = ", ";
    };
    add(report_.all.lost_words, "word", "words", " of rings lost");
    add(report_.all.unprobed, "gap", "gaps", " while probes were off");
    add(report_.words_before, "word", "words", " overwritten before the ring was read");
    add(report_.rings_missed, "ring", "rings", " not read");
    add(report_.ignored_events, "phase", "phases", " ignored (too many domains)");
    add(unfinished(Unfinished::lost), one(), many(), " cut by losses");
    add(unfinished(Unfinished::no_end), one(), many(), " with no end seen");
    add(unfinished(Unfinished::clock), one(), many(), " with a clock that went backwards");
    print(out_, "\n   counts and totals are at least this high; {} of unknown length are not counted\n", many());
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
      for (const auto& [name, ns] : {std::pair{"total", wall.total()}, std::pair{"mean", whole(wall.mean())},
                                     std::pair{"stddev", whole(wall.standard_deviation())},
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
    for (const double percentile : latency_percentiles) {
      table.row();
      table.cell(fmt::format("{:.4f}", percentile));  // as olly prints them
      table.duration(figures.wall.percentile(percentile));
      if (any_split) {
        for (const Histogram* part : {&figures.on_cpu, &figures.runnable, &figures.blocked})
          table.duration(part->percentile(percentile));
      }
    }
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
    for (const LatencyReport::Process& process : report_.processes) {
      TextBuffer title;
      print(title, "process {} {}", process.pid, Escaped{process.comm});
      block(title.text(), process.figures);
      for (const LatencyReport::Domain& domain : process.domains) {
        TextBuffer part;
        print(part, "{}, domain {}", title.text(), domain.domain);
        if (domain.incarnations > 1) print(part, " ({} incarnations)", domain.incarnations);
        block(part.text(), domain.figures);
      }
    }
    if (!report_.others.empty()) block("others", report_.others);
  }

  void table() {
    if (report_.processes.empty()) return;
    TextTable table;
    table.column("PID", pid_width).column("COMM", 0, TextTable::Align::left).column("DOM", domain_width);
    table.column("COUNT", count_width);
    for (const std::string_view title : {"TOTAL", "MEAN", "STDDEV", "MIN", "P50", "P99", "P99.9", "MAX"})
      table.column(title, duration_width);
    if (report_.scheduler_seen) {
      for (const std::string_view title : {"ONCPU", "RUNBL", "BLOCK"}) table.column(title, share_width + 1);
    }
    const std::size_t shown = std::min(report_.processes.size(), max_processes);
    for (std::size_t i = 0; i < shown; ++i) rows(table, report_.processes[i]);
    LatencyFigures rest = report_.others;
    for (std::size_t i = shown; i < report_.processes.size(); ++i) rest.merge(report_.processes[i].figures);
    if (!rest.empty()) {
      table.row();
      table.cell();
      table.cell("others");
      table.cell();
      row(table, rest);
    }
    out_.add('\n');
    table.write(out_);
  }

  void rows(TextTable& table, const LatencyReport::Process& process) {
    TextBuffer pid, comm;
    pid.add(process.pid);
    add_column(comm, process.comm, comm_width);
    table.row();
    table.cell(pid.text());
    table.cell(comm.text());
    if (process.domains.size() == 1) {
      table.cell(std::to_string(process.domains.front().domain));
      row(table, process.figures);
      return;
    }
    table.cell("all");
    row(table, process.figures);
    const std::size_t shown = std::min(process.domains.size(), max_domains);
    for (std::size_t i = 0; i < shown; ++i) {
      table.row();
      table.cell();
      table.cell();
      table.cell(std::to_string(process.domains[i].domain));
      row(table, process.domains[i].figures);
    }
    if (process.domains.size() == shown) return;
    TextBuffer more;
    more.add_repeated(' ', pid_width + 2);
    print(more, "and {}", Counted{process.domains.size() - shown, "more domain", "more domains"});
    table.line(more.text());
  }

  void row(TextTable& table, const LatencyFigures& figures) const {
    const Histogram& wall = figures.wall;
    table.cell(wall.count());
    if (wall.count() > 0) {
      for (const std::uint64_t ns : {wall.total(), whole(wall.mean()), whole(wall.standard_deviation()), wall.min(),
                                     wall.percentile(50), wall.percentile(99), wall.percentile(99.9), wall.max()})
        table.duration(ns);
      if (report_.scheduler_seen) {
        const TimeSplit& time = figures.split;
        for (const std::uint64_t ns : {time.on_cpu, time.runnable, time.blocked()}) table.cell(share(ns, wall.total()));
      }
    }
    if (figures.lower_bound()) table.remark("!");
  }

  const LatencyReport& report_;
  const bool full_;
  TextBuffer out_;
};

}  // namespace

std::string latency_text(const LatencyReport& report, bool full) {
  return Report{report, full}.text();
}

}  // namespace rtev
