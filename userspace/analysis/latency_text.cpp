// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "analysis/latency_figures.hpp"
#include "sinks/escape.hpp"
#include "sinks/units.hpp"

namespace rtev {
namespace {

constexpr std::size_t pid_width = 7, comm_width = 15, domain_width = 4, count_width = 12, duration_width = 9,
                      share_width = 6, percentile_width = 12;
constexpr std::size_t most_processes = 20, most_domains = 16;

void add_padded(TextBuffer& out, std::string_view text, std::size_t width) {
  if (const std::size_t columns = columns_of(text); columns < width) out.add_repeated(' ', width - columns);
  out.add(text);
}

void add_time(TextBuffer& out, std::uint64_t ns, std::size_t width = duration_width) {
  TextBuffer text;
  add_duration(text, ns);
  add_padded(out, text.text(), width);
}

std::uint64_t whole(double ns) {
  return static_cast<std::uint64_t>(std::llround(ns));
}

void add_count(TextBuffer& out, std::uint64_t count, std::size_t width = count_width) {
  TextBuffer text;
  text.add_grouped(count);
  add_padded(out, text.text(), width);
}

/// "12.3%" of the whole.
void add_share(TextBuffer& out, std::uint64_t part, std::uint64_t of) {
  TextBuffer text;
  if (of == 0) {
    text.add('-');
  } else {
    const auto per_mille = whole(static_cast<double>(part) / static_cast<double>(of) * 1000);
    text.add(per_mille / 10, '.', per_mille % 10, '%');
  }
  add_padded(out, text.text(), share_width + 1);
}

/// Four decimals, as olly prints them.
void add_percentile(TextBuffer& out, double percentile) {
  std::array<char, 32> text;
  const auto written = std::to_chars(text.data(), text.data() + text.size(), percentile, std::chars_format::fixed, 4);
  add_padded(out, {text.data(), static_cast<std::size_t>(written.ptr - text.data())}, percentile_width);
}

void add_counted(TextBuffer& out, std::uint64_t count, std::string_view singular, std::string_view plural) {
  out.add_grouped(count);
  out.add(' ', count == 1 ? singular : plural);
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
      out_.add("spans of ");
      add_escaped(out_, report_.phase);
    }
    if (report_.min_ns > 0) {
      out_.add(" of ");
      add_duration(out_, report_.min_ns);
      out_.add(" and longer");
    }
    out_.add(": ");
    out_.add_grouped(report_.all.wall.count());
    out_.add(" of ");
    add_counted(out_, report_.processes.size(), "process", "processes");
    if (report_.other_domains > 0) {
      out_.add(" and ");
      add_counted(out_, report_.other_domains, "more domain", "more domains");
    }
    if (report_.span == LatencyReport::Span::interval) {
      out_.add(", from ");
      add_seconds(out_, report_.start_ns, report_.run_ns, 0);
      out_.add(" to ");
      add_seconds(out_, report_.end_ns, report_.run_ns, 0);
      out_.add(" s");
    } else {
      out_.add(report_.span == LatencyReport::Span::so_far ? " so far, in " : " in ");
      add_duration(out_, report_.end_ns - report_.start_ns);
    }
    out_.add('\n');
  }

  void warnings() {
    if (report_.lower_bound()) lower_bounds();
    if (const std::uint64_t ended = unfinished(Unfinished::ended); ended > 0) {
      add_counted(out_, ended, one(), many());
      out_.add(" lasted when the domain or the run ended and ", ended == 1 ? "is" : "are", " in no figure\n");
    }
    if (report_.scheduler_dropped > 0) {
      out_.add("!! DROPPED: ");
      add_counted(out_, report_.scheduler_dropped, "scheduler event", "scheduler events");
      out_.add("; what threads did then is told as not known\n");
    }
    if (!report_.scheduler_seen && report_.all.wall.count() > 0) {
      out_.add("no scheduler events: what the threads did in that time is not known\n");
    }
  }

  void lower_bounds() {
    std::string_view separator = "!! LOWER BOUNDS: ";
    const auto add = [&](std::uint64_t count, std::string_view singular, std::string_view plural,
                         std::string_view what) {
      if (count == 0) return;
      out_.add(separator);
      add_counted(out_, count, singular, plural);
      out_.add(what);
      separator = ", ";
    };
    add(report_.all.lost_words, "word", "words", " of rings lost");
    add(report_.words_before, "word", "words", " overwritten before the ring was read");
    add(report_.rings_missed, "ring", "rings", " not read");
    add(report_.ignored_events, "phase", "phases", " of more domains than can be followed at once");
    add(unfinished(Unfinished::lost), one(), many(), " cut by losses");
    add(unfinished(Unfinished::no_end), one(), many(), " without an end");
    add(unfinished(Unfinished::clock), one(), many(), " whose clock went back");
    out_.add("\n   counts and totals are at least what is said; lengths that are not known are in no figure\n");
  }

  std::uint64_t unfinished(Unfinished reason) const { return report_.all.unfinished[static_cast<std::size_t>(reason)]; }
  std::string_view one() const { return report_.phase.empty() ? "pause" : "span"; }
  std::string_view many() const { return report_.phase.empty() ? "pauses" : "spans"; }

  /// All figures of one distribution.
  void block(std::string_view title, const LatencyFigures& figures) {
    const Histogram& wall = figures.wall;
    out_.add('\n', title, figures.lower_bound() ? " !\n" : "\n");
    out_.add("  count ");
    out_.add_grouped(wall.count());
    if (wall.count() > 0) {
      for (const auto& [name, ns] : {std::pair{"total", wall.total()}, std::pair{"mean", whole(wall.mean())},
                                     std::pair{"stddev", whole(wall.standard_deviation())},
                                     std::pair{"min", wall.min()}, std::pair{"max", wall.max()}}) {
        out_.add("  ", std::string_view{name}, ' ');
        add_duration(out_, ns);
      }
    }
    if (figures.below_min > 0) {
      out_.add("  shorter ");
      out_.add_grouped(figures.below_min);
    }
    out_.add('\n');
    if (wall.count() > 0) percentiles(figures);
  }

  void percentiles(const LatencyFigures& figures) {
    const bool split = report_.scheduler_seen;
    const bool any_split = split && figures.on_cpu.count() > 0;
    add_padded(out_, "PERCENTILE", percentile_width);
    add_padded(out_, "WALL", duration_width + 1);
    if (any_split) {
      for (const std::string_view title : {"ON-CPU", "RUNNABLE", "BLOCKED"})
        add_padded(out_, title, duration_width + 1);
    }
    out_.add('\n');
    for (const double percentile : latency_percentiles) {
      add_percentile(out_, percentile);
      add_time(out_, figures.wall.percentile(percentile), duration_width + 1);
      if (any_split) {
        for (const Histogram* part : {&figures.on_cpu, &figures.runnable, &figures.blocked}) {
          add_time(out_, part->percentile(percentile), duration_width + 1);
        }
      }
      out_.add('\n');
    }
    if (!split) return;
    add_padded(out_, "total", percentile_width);
    const TimeSplit& time = figures.split;
    add_time(out_, figures.wall.total(), duration_width + 1);
    if (any_split) {
      for (const std::uint64_t ns : {time.on_cpu, time.runnable, time.blocked()})
        add_time(out_, ns, duration_width + 1);
    }
    if (time.unknown > 0) {
      out_.add("   not known: ");
      add_duration(out_, time.unknown);
      out_.add(" in ");
      out_.add_grouped(figures.wall.count() - figures.on_cpu.count());
      out_.add(" of the ", many());
    }
    out_.add('\n');
  }

  void blocks() {
    for (const LatencyReport::Process& process : report_.processes) {
      TextBuffer title;
      title.add("process ", process.pid, ' ');
      add_escaped(title, process.comm);
      block(title.text(), process.figures);
      for (const LatencyReport::Domain& domain : process.domains) {
        TextBuffer part;
        part.add(title.text(), ", domain ", domain.domain);
        if (domain.incarnations > 1) part.add(" (", domain.incarnations, " one after the other)");
        block(part.text(), domain.figures);
      }
    }
    if (!report_.others.empty()) block("others", report_.others);
  }

  void table() {
    if (report_.processes.empty()) return;
    out_.add('\n');
    add_padded(out_, "PID", pid_width);
    out_.add(" COMM");
    out_.add_repeated(' ', comm_width - std::string_view{"COMM"}.size());
    add_padded(out_, "DOM", domain_width);
    add_padded(out_, "COUNT", count_width);
    for (const std::string_view title : {"TOTAL", "MEAN", "STDDEV", "MIN", "P50", "P99", "P99.9", "MAX"}) {
      add_padded(out_, title, duration_width);
    }
    if (report_.scheduler_seen) {
      for (const std::string_view title : {"ONCPU", "RUNBL", "BLOCK"}) add_padded(out_, title, share_width + 1);
    }
    out_.add('\n');
    const std::size_t shown = std::min(report_.processes.size(), most_processes);
    for (std::size_t i = 0; i < shown; ++i) rows(report_.processes[i]);
    LatencyFigures rest = report_.others;
    for (std::size_t i = shown; i < report_.processes.size(); ++i) rest.merge(report_.processes[i].figures);
    if (rest.empty()) return;
    out_.add_repeated(' ', pid_width + 1);
    add_column(out_, "others", comm_width);
    out_.add_repeated(' ', domain_width);
    row(rest);
  }

  void rows(const LatencyReport::Process& process) {
    out_.add_right(process.pid, pid_width);
    out_.add(' ');
    add_column(out_, process.comm, comm_width);
    if (process.domains.size() == 1) {
      out_.add_right(process.domains.front().domain, domain_width);
      row(process.figures);
      return;
    }
    add_padded(out_, "all", domain_width);
    row(process.figures);
    const std::size_t shown = std::min(process.domains.size(), most_domains);
    for (std::size_t i = 0; i < shown; ++i) {
      out_.add_repeated(' ', pid_width + 1 + comm_width);
      out_.add_right(process.domains[i].domain, domain_width);
      row(process.domains[i].figures);
    }
    if (process.domains.size() == shown) return;
    out_.add_repeated(' ', pid_width + 1);
    out_.add("and ");
    add_counted(out_, process.domains.size() - shown, "more domain", "more domains");
    out_.add('\n');
  }

  void row(const LatencyFigures& figures) {
    const Histogram& wall = figures.wall;
    add_count(out_, wall.count());
    if (wall.count() > 0) {
      for (const std::uint64_t ns : {wall.total(), whole(wall.mean()), whole(wall.standard_deviation()), wall.min(),
                                     wall.percentile(50), wall.percentile(99), wall.percentile(99.9), wall.max()}) {
        add_time(out_, ns);
      }
      if (report_.scheduler_seen) {
        const TimeSplit& time = figures.split;
        for (const std::uint64_t ns : {time.on_cpu, time.runnable, time.blocked()}) add_share(out_, ns, wall.total());
      }
    }
    out_.add(figures.lower_bound() ? " !\n" : "\n");
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
