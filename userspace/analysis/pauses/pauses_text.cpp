// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/pauses/blame.hpp"
#include "analysis/pauses/pauses_report.hpp"
#include "analysis/report_text.hpp"
#include "analysis/utilization/utilization_report.hpp"
#include "base/folding.hpp"

namespace rtev {
namespace {

/// Of the default report, which fits a terminal: of its lines some are the shell's.
constexpr std::size_t max_pause_lines = 22;
constexpr std::size_t indent = 2;

/// "20ms", of a whole number of a unit.
struct RoundDuration {
  std::uint64_t ns;
};

void append(TextBuffer& out, const RoundDuration& duration) {
  for (const auto& [unit_ns, unit] : {std::pair{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "µs"}}) {
    const auto length = static_cast<std::uint64_t>(unit_ns);
    if (duration.ns < length || duration.ns % length != 0) continue;
    out.add(duration.ns / length, std::string_view{unit});
    return;
  }
  append(out, Duration{duration.ns});
}

std::size_t lines_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

class PausesText {
 public:
  explicit PausesText(const PausesReport& report) : report_(report) {}

  std::string text() {
    headline();
    const std::size_t shown = groups();
    TextBuffer remarks;
    TextBuffer lines;
    warnings(lines);
    unfinished(lines);
    add_lines(remarks, lines.text());
    if (report_.full) {
      out_.add(remarks.text());
      for (std::size_t i = 0; i < report_.worst.size(); ++i) full_pause(i + 1, *report_.worst[i]);
      if (!report_.unfinished.empty()) list_unfinished();
    } else if (report_.longest_only) {
      for (const PauseDetails* const pause : report_.worst) add(short_pause("", *pause));
      add(remarks.text());
    } else {
      worst_of_groups(std::min(shown, report_.max_worst), lines_in(remarks.text()));
      add(remarks.text());
    }
    return std::string{out_.text()};
  }

 private:
  void add(std::string_view paragraph) {
    if (!paragraph.empty()) out_.add('\n', paragraph);
  }

  void headline() {
    const PausesReport::Counts& counts = report_.counts;
    std::string pauses =
        fmt::format("{}{}", at_least(report_.lower_bound()), Counted{counts.pauses, "pause", "pauses"});
    if (!report_.several_processes && !report_.worst.empty()) {
      const PauseDetails& worst = *report_.worst.front();
      pauses += fmt::format(" of {}", ProcessName{worst.comm, worst.domain.pid});
    }
    TextBuffer line;
    if (report_.is_unknown()) {
      const std::string what = report_.not_recorded.text({EventKind::begin});
      line.add("pauses are unknown: ", what.empty() ? why_none_read(report_.read_programs) : what);
    } else if (counts.pauses == 0) {
      line.add("no pauses");
    } else if (counts.long_enough == 0) {
      print(line, "none of {} lasted {} or longer", pauses, Duration{report_.min_ns});
    } else if (report_.long_pauses.count == counts.pauses) {
      line.add(pauses);
    } else {
      print(line, "{}{} of {} lasted {} or longer", at_least(report_.lower_bound()), Grouped{report_.long_pauses.count},
            pauses, RoundDuration{report_.long_pauses.least_ns});
    }
    if (report_.end_ns > report_.start_ns && !report_.is_unknown())
      print(line, ", in {}", Duration{report_.end_ns - report_.start_ns});
    if (!report_.worst.empty())
      print(line, "; the longest {}{}", at_least(report_.lower_bound()),
            Duration{report_.worst.front()->duration_ns()});
    out_.add(folded(line.text(), 0, indent), '\n');
    if (counts.pauses > 0) add_utilization_line(out_, report_.utilization);
  }

  /// How many of the long pauses have which cause. Returns how many groups are listed.
  std::size_t groups() {
    const LongPauses& found = report_.long_pauses;
    const std::size_t shown = report_.full ? found.groups.size() : std::min(found.groups.size(), report_.max_groups);
    const auto groups = found.groups | std::views::take(shown);
    std::size_t count_width = 0;
    for (const CauseGroup& group : groups)
      count_width = std::max(count_width, fmt::format("{}", Grouped{group.count}).size());
    for (const CauseGroup& group : groups) {
      TextBuffer line;
      print(line, "{:>{}} × ", Grouped{group.count}, count_width + 2);
      append(line, CauseName{.group = group,
                             .seen = report_.counts.switches_seen(),
                             .with_program = report_.several_processes,
                             .with_time = true});
      out_.add(folded(line.text(), 0, count_width + 5), '\n');
    }
    if (shown < found.groups.size() || found.ungrouped > 0) {
      std::uint64_t pauses = found.ungrouped;
      for (std::size_t i = shown; i < found.groups.size(); ++i) pauses += found.groups[i].count;
      print(out_, "  and {} by other causes\n", Counted{pauses, "pause", "pauses"});
    }
    return shown;
  }

  /// As many as there is room for.
  void worst_of_groups(std::size_t shown, std::size_t lines_after) {
    if (report_.max_worst == 1 && !report_.worst.empty()) return add(short_pause("", *report_.worst.front()));
    for (std::size_t i = 0; i < shown; ++i) {
      const CauseGroup& group = report_.long_pauses.groups[i];
      const std::string pause = short_pause(
          group.count == 1 ? "" : fmt::format(", the longest of the {}", Grouped{group.count}), *group.worst);
      const bool fits = lines_in(out_.text()) + 1 + lines_in(pause) + 1 + lines_after <= max_pause_lines;
      if (i > 0 && !fits) return;
      add(pause);
    }
  }

  void where(TextBuffer& out, const PauseDetails& of) const {
    print(out, "{} domain {}", ProcessName{of.comm, of.domain.pid},
          DomainName{of.domain.domain, of.domain.incarnation});
    if (report_.full && of.tid != 0) {
      print(out, ", thread {}", of.tid);
      if (of.role != ThreadRole::unknown) print(out, " ({})", to_string(of.role));
    }
    print(out, ", at {}", WhenOf{of.begin_ns, report_.run_ns, report_.run_realtime_ns});
  }

  std::string blame(const PauseDetails& of) const {
    return blame_text(of, blame_of(of), report_.counts.switches_seen(), *report_.stacks) + ".";
  }

  void full_pause(std::size_t rank, const PauseDetails& of) {
    out_.add('\n');
    TextBuffer title;
    print(title, "#{}  {}  ", rank, Duration{of.duration_ns()});
    where(title, of);
    out_.add(folded(title.text(), 0, 4), '\n');
    print(out_, "    blame: {}\n", folded(blame(of), 11, 4));
    add_details(out_, of, report_.run_ns, *report_.stacks);
  }

  std::string short_pause(std::string_view rank, const PauseDetails& of) const {
    TextBuffer out, title;
    print(title, "{}{}: ", Duration{of.duration_ns()}, rank);
    where(title, of);
    add_line(out, title.text());
    out.add_repeated(' ', indent);
    out.add(folded(blame(of), indent, indent), '\n');
    parts(out, of);
    if (!report_.input.empty()) {
      out.add_repeated(' ', indent);
      print(out, "{}\n", DumpCommand{report_.input, of.begin_ns, of.end_ns, report_.run_ns});
    }
    return std::string{out.text()};
  }

  /// What its thread did, if the blame does not say it all.
  static void parts(TextBuffer& out, const PauseDetails& of) {
    const std::uint64_t whole = of.duration_ns();
    TextBuffer line;
    std::string_view separator;
    const auto add = [&](std::string_view name, std::uint64_t ns) {
      if (ns < whole / 100 || ns == 0) return;
      print(line, "{}{} {} ({})", separator, name, Duration{ns}, Percent{ns, whole});
      separator = ", ";
    };
    add("on CPU", of.time.on_cpu);
    add("runnable", of.time.runnable);
    add("blocked", of.time.blocked());
    if (of.time.total() != of.time.unknown) add("unknown", of.time.unknown);
    if (line.text().empty() || line.text().find(',') == std::string_view::npos) return;
    out.add_repeated(' ', indent);
    out.add(folded(line.text(), indent, indent), '\n');
  }

  void warnings(TextBuffer& out) const {
    const PausesReport::Counts& counts = report_.counts;
    add_lacks(out, report_.lacks);
    if (report_.is_unknown()) return;
    if (report_.not_recorded.has_phases())
      add_line(out, report_.not_recorded.text({EventKind::begin}) + ": phases within pauses are missing");
    if (counts.words_before > 0) {
      print(out, "warning: {} overwritten before the ring was read; earlier pauses are missing\n",
            Counted{counts.words_before, "word was", "words were"});
    }
    if (report_.full && counts.represented > 0) {
      print(out, "{} only in the stop-the-world tables below\n",
            Counted{counts.represented, "more pause appears", "more pauses appear"});
    }
    const bool says_lacks = lacks_events(report_.lacks);
    const Counted incomplete{counts.unfinished[static_cast<std::size_t>(Unfinished::lost)], "pause is", "pauses are"};
    if (says_lacks && incomplete.count > 0) {
      print(out, "{} incomplete, as events are missing\n", incomplete);
    } else if (const LostWords lost{counts.lost_words, counts.unprobed}; !says_lacks && lost.any()) {
      print(out, "warning: {}; {} incomplete, others may be missing\n", lost.text(), incomplete);
    }
    if (counts.ignored_events > 0) {
      print(out, "warning: too many domains: {} ignored, with their pauses\n",
            Counted{counts.ignored_events, "phase was", "phases were"});
    }
    if (!counts.scheduler_seen) {
      out.add("no scheduler events: it is unknown whether threads ran or waited\n");
    } else {
      add_unknown_time(out, counts.unknown_ns, counts.total_ns, "pauses", report_.not_recorded, report_.lacks,
                       counts.scheduler_dropped);
    }
    add_line(out, why_some_unread(report_.read_programs));
    add_own_share(out, report_.own, report_.end_ns - report_.start_ns);
  }

  void unfinished(TextBuffer& out) const {
    if (report_.full || report_.unfinished.empty()) return;
    std::uint64_t count = 0;
    for (const std::uint64_t of_reason : report_.counts.unfinished) count += of_reason;
    print(out, "{} of unknown length and {} not counted here\n", Counted{count, "pause was", "pauses were"},
          count == 1 ? "is" : "are");
  }

  void list_unfinished() {
    out_.add("\npauses of unknown length\n");
    for (const UnfinishedPause& pause : report_.unfinished) {
      const std::string_view bound = pause.reason == Unfinished::ended ? "at least" : "at most";
      print(out_, "    {:8} {:>{}}  {} domain {}, {}, at {}: {}\n", bound, Duration{pause.until_ns - pause.begin_ns},
            duration_width, ProcessName{pause.comm, pause.domain.pid},
            DomainName{pause.domain.domain, pause.domain.incarnation}, PhaseName{pause.domain.family, pause.root},
            WhenOf{pause.begin_ns, report_.run_ns, report_.run_realtime_ns},
            reason_text(pause.reason, report_.truncated));
    }
  }

  static std::string_view reason_text(Unfinished reason, bool truncated) {
    switch (reason) {
      case Unfinished::lost:  // in a ring, or while its program was not probed
        return "events of its domain were lost during it";
      case Unfinished::no_end:
        return "its end was not seen";
      case Unfinished::clock:
        return "its clock went back";
      case Unfinished::ended:
        return truncated ? "it was open when the domain, the ring or the recording ended"
                         : "it was open when the domain, the ring or the run ended";
    }
    return "unknown";
  }

  const PausesReport& report_;
  TextBuffer out_;
};

}  // namespace

std::string report_text(const PausesReport& report) {
  return PausesText{report}.text();
}

}  // namespace rtev
