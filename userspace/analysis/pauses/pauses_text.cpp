// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/pauses/blame.hpp"
#include "analysis/pauses/pauses_report.hpp"
#include "analysis/report_text.hpp"
#include "base/text_table.hpp"

namespace rtev {
namespace {

constexpr std::size_t phase_width = 40, count_width = 8, thread_width = 17;
constexpr std::uint64_t least_share_of_phase = 1000;  // a thousandth of the pause
constexpr std::size_t max_phases = 24, max_competitors = 4, max_domains = 16;

class Report {
 public:
  explicit Report(const PausesReport& report) : report_(report) {}

  std::string text() {
    headline();
    warnings();
    for (std::size_t i = 0; i < report_.worst.size(); ++i) pause(i + 1, *report_.worst[i]);
    unfinished();
    return std::string{out_.text()};
  }

 private:
  void headline() {
    const PausesReport::Counts& counts = report_.counts;
    if (counts.pauses == 0) {
      out_.add("no pauses");
    } else {
      if (report_.worst.empty()) {
        out_.add("none of ");
      } else if (report_.worst.size() == 1) {
        out_.add("the worst of ");
      } else {
        print(out_, "the {} worst of ", report_.worst.size());
      }
      print(out_, "{}{}", counts.words_before > 0 ? "at least " : "", Counted{counts.pauses, "pause", "pauses"});
      if (report_.min_ns > 0) {
        if (!report_.worst.empty()) print(out_, ", of which {}", Grouped{counts.long_enough});
        print(out_, " lasted {} or longer", Duration{report_.min_ns});
      }
    }
    if (report_.end_ns > report_.start_ns) print(out_, ", in {}", Duration{report_.end_ns - report_.start_ns});
    out_.add('\n');
    if (counts.words_before > 0) {
      print(out_, "warning: {} overwritten before the ring was read; earlier pauses are missing\n",
            Counted{counts.words_before, "word was", "words were"});
    }
    if (counts.represented > 0) {
      print(out_, "{} only in the stop-the-world tables below\n",
            Counted{counts.represented, "more pause appears", "more pauses appear"});
    }
  }

  void warnings() {
    const PausesReport::Counts& counts = report_.counts;
    if (counts.lost_words > 0 || counts.unprobed > 0) {
      out_.add("warning: ");
      if (counts.lost_words > 0) print(out_, "{} lost", Counted{counts.lost_words, "ring word was", "ring words were"});
      if (counts.lost_words > 0 && counts.unprobed > 0) out_.add(" and ");
      if (counts.unprobed > 0) print(out_, "tracing by probes paused {}", times(counts.unprobed));
      print(out_, "; {} incomplete, others may be missing\n",
            Counted{counts.unfinished[static_cast<std::size_t>(Unfinished::lost)], "pause is", "pauses are"});
    }
    if (counts.rings_missed > 0)
      print(out_, "warning: {} could not be read\n", Counted{counts.rings_missed, "ring", "rings"});
    if (counts.ignored_events > 0) {
      print(out_, "warning: too many domains: {} ignored, with their pauses\n",
            Counted{counts.ignored_events, "phase was", "phases were"});
    }
    if (counts.scheduler_dropped > 0) {
      print(out_, "warning: the kernel dropped {}; affected time is shown as unknown\n",
            Counted{counts.scheduler_dropped, "scheduler event", "scheduler events"});
    }
    if (counts.scheduler_contradictions > 0) {
      print(out_, "warning: {} (some were lost); affected time is shown as unknown\n",
            Counted{counts.scheduler_contradictions, "inconsistent context switch", "inconsistent context switches"});
    }
    if (!counts.scheduler_seen) out_.add("no scheduler events: it is unknown whether threads ran or waited\n");
  }

  void pause(std::size_t rank, const PauseDetails& of) {
    print(out_, "\n#{}  {}  {} (pid {}) domain {}", rank, Duration{of.duration_ns()}, Quoted{of.comm}, of.domain.pid,
          DomainName{of.domain.domain, of.domain.incarnation});
    if (of.tid != 0) {
      print(out_, ", thread {}", of.tid);
      if (of.role != ThreadRole::unknown) print(out_, " ({})", to_string(of.role));
    }
    print(out_, ", at {}\n    blame: {}.\n", Moment{of.begin_ns, report_.start_ns},
          blame_text(of, blame_of(of), report_.counts.switches_seen()));
    durations(of);
    scheduling(of);
    uncertainties(of);
    phases(of);
    sections(of);
  }

  void part(std::string_view name, std::uint64_t ns, std::uint64_t of_ns) {
    print(out_, "  {} {} ({})", name, Duration{ns}, Percent{ns, of_ns});
  }

  void durations(const PauseDetails& of) {
    const std::uint64_t whole = of.duration_ns();
    out_.add("\n    time    ");
    part("on CPU", of.time.on_cpu, whole);
    part("runnable", of.time.runnable, whole);
    part("blocked", of.time.blocked(), whole);
    part("unknown", of.time.unknown, whole);
    out_.add('\n');
    if (of.time.blocked() > 0) {
      out_.add("    blocked ");
      part("at barriers", of.blocked.barrier, whole);
      part("elsewhere in stop-the-world", of.blocked.section, whole);
      part("otherwise", of.blocked.other, whole);
      out_.add('\n');
    }
    if (of.start_wait_ns > 0 || of.finish_wait_ns > 0) {
      out_.add("    waited  ");
      part("for domains to stop", of.start_wait_ns, whole);
      part("for domains to end their minor collection", of.finish_wait_ns, whole);
      out_.add('\n');
    }
  }

  void scheduling(const PauseDetails& of) {
    const SchedulingDetail& detail = of.scheduling;
    if (detail.preempted() + detail.blocked() + detail.woken() + detail.migrations() > 0) {
      print(out_, "    switches  preempted {}, blocked {}", times(detail.preempted()), times(detail.blocked()));
      if (detail.blocked() > 0) print(out_, " (longest {})", Duration{detail.longest_block_ns()});
      print(out_, ", woken {}", times(detail.woken()));
      wakers(of);
      print(out_, ", moved to another CPU {}\n", times(detail.migrations()));
    }
    const auto competitors = detail.competitors();
    std::uint64_t rest = detail.other_competitors_ns();
    for (std::size_t i = 0; i < competitors.size(); ++i) {
      if (i >= max_competitors) {
        rest += competitors[i].wait.ns;
      } else {
        competitor(competitors[i], of.domain.pid);
      }
    }
    if (rest > 0) print(out_, "    no CPU    for {} behind other threads\n", Duration{rest});
    if (detail.unknown_competitors_ns() > 0)
      print(out_, "    no CPU    for {} behind unknown threads\n", Duration{detail.unknown_competitors_ns()});
  }

  void wakers(const PauseDetails& of) {
    const auto wakers = of.scheduling.wakers();
    if (wakers.empty()) return;
    print(out_, " (by {}", ThreadName{wakers.front().thread, of.domain.pid});
    if (wakers.size() > 1) print(out_, " and {} more", wakers.size() - 1);
    out_.add(')');
  }

  void competitor(const SchedulingDetail::CpuCompetitor& competitor, std::int32_t own_pid) {
    print(out_, "    no CPU    for {}, {}", Duration{competitor.wait.ns}, times(competitor.times));
    if (competitor.wait.cpu >= 0) print(out_, ", CPU {}", competitor.wait.cpu);
    print(out_, " {}\n", Behind{competitor.wait, own_pid});
  }

  void uncertainties(const PauseDetails& of) {
    if (of.late) out_.add("    warning: its events arrived late; its scheduling is uncertain\n");
    if (!of.lost_domains.empty())
      print(out_, "    warning: words were lost in the rings of other domains: {}\n", fmt::join(of.lost_domains, " "));
  }

  void phases(const PauseDetails& of) {
    const auto nodes = of.phases.in_depth();
    // If there are very many, only the longest are shown, each in its place.
    std::vector<std::uint64_t> longest;
    longest.reserve(nodes.size());
    for (const PhaseTree::Node* const node : nodes) longest.push_back(node->total_ns);
    std::ranges::sort(longest, std::ranges::greater{});
    const std::uint64_t least =
        std::max(longest.size() > max_phases ? longest[max_phases - 1] : 0, of.duration_ns() / least_share_of_phase);
    TextTable table{4};
    table.column("PHASE", phase_width, TextTable::Align::left).column("TIMES", count_width);
    table.column("TOTAL", duration_width).column("OWN", duration_width);
    std::size_t shown = 0;
    for (const PhaseTree::Node* const node : nodes) {
      if (node->total_ns < least || shown == max_phases) continue;
      ++shown;
      TextBuffer name;
      if (node->depth > 0) name.add_repeated(' ', std::min<std::size_t>(node->depth, 10) * 2);
      append(name, PhaseName{of.domain.family, node->phase});
      table.row();
      table.cell(name.text());
      table.cell(node->count);
      table.duration(node->total_ns);
      table.duration(node->own_ns);
    }
    out_.add('\n');
    table.write(out_);
    const std::uint64_t others = nodes.size() - shown + of.phases.folded();
    if (others > 0) print(out_, "    and {} more that took less\n", Grouped{others});
  }

  void sections(const PauseDetails& of) {
    std::vector<const PauseSection*> parts;
    for (const PauseSection& part : of.sections) {
      if (part.section->domains.size() + part.section->unnamed > 1) parts.push_back(&part);
    }
    // The longest waits first.
    std::ranges::sort(parts, std::ranges::greater{}, [](const PauseSection* part) {
      return std::pair(part->start_wait_ns + part->finish_wait_ns, part->section->id);
    });
    for (const PauseSection* const part : parts) section(of, *part);
    if (of.section_count > of.sections.size()) {
      print(out_, "\n    and {} in this pause\n",
            Counted{of.section_count - of.sections.size(), "more stop-the-world section",
                    "more stop-the-world sections"});
    }
  }

  /// A stop-the-world section that a pause took part in, its domains in order of arrival; of very many domains those
  /// that arrived last.
  void section(const PauseDetails& of, const PauseSection& part) {
    const StwSection& section = *part.section;
    const StwDomain* const last = section.last_to_arrive();
    print(out_, "\n    stop-the-world of {}, {} {}",
          Counted{section.domains.size() + section.unnamed, "domain", "domains"},
          section.leader_seen ? "requested at" : "leader unknown, from", Moment{section.begin_ns, report_.start_ns});
    if (last)
      print(out_, ", all arrived after {}", Duration{last->arrived_ns - std::min(last->arrived_ns, section.begin_ns)});
    if (!section.has_barrier) out_.add(", without waiting for each other");
    out_.add('\n');
    TextTable table{4};
    table.column("DOMAIN", 0).column("THREAD", thread_width + 2, TextTable::Align::left);
    table.column("ARRIVED", duration_width + 1).column("WAITED", duration_width);
    table.column("MINOR-END", duration_width + 1).column("WAITED", duration_width).column("PAUSE", duration_width);
    table.column("BEFORE IT ARRIVED", 0, TextTable::Align::left);
    std::vector<const StwDomain*> order;
    order.reserve(section.domains.size());
    for (const StwDomain& domain : section.domains) order.push_back(&domain);
    std::ranges::sort(order, {}, [](const StwDomain* domain) { return std::pair(domain->arrived_ns, domain->domain); });
    const std::size_t skipped = order.size() > max_domains ? order.size() - max_domains : 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      // The first to arrive matter least.
      const bool own = order[i] == &part.own();
      if (i >= skipped || own || order[i]->leads) participant(table, of, section, *order[i], last);
    }
    table.write(out_);
    if (skipped + section.unnamed > 0)
      print(out_, "    and about {} more that arrived earlier\n", Grouped{skipped + section.unnamed});
    if (!section.lost_domains.empty())
      print(out_, "    warning: words were lost in the rings of domains: {}\n", fmt::join(section.lost_domains, " "));
  }

  static void participant(TextTable& table, const PauseDetails& of, const StwSection& section, const StwDomain& domain,
                          const StwDomain* last) {
    TextBuffer thread;
    if (domain.tid == 0) {
      thread.add('?');
    } else {
      thread.add(domain.tid);
      if (domain.role == ThreadRole::backup) thread.add(" backup");
    }
    if (domain.leads) thread.add(" leads");
    const StwDomain* const slowest = section.last_to_end_minor();
    const std::uint64_t all_done = slowest ? std::min(slowest->minor_end_ns, domain.minor_passed_ns) : 0;
    table.row();
    table.cell(std::to_string(domain.domain));
    table.cell(thread.text());
    offset(table, domain.arrived_ns, section.begin_ns);
    table.duration(last ? last->arrived_ns - std::min(last->arrived_ns, domain.arrived_ns) : 0);
    offset(table, domain.minor_end_ns, section.begin_ns);
    table.duration(domain.minor_end_ns != 0 && all_done > domain.minor_end_ns ? all_done - domain.minor_end_ns : 0);
    if (domain.pause_begin_ns == 0) {
      table.cell("?");
    } else {
      table.duration(domain.pause_ns);
    }
    table.cell(before(of, section, domain));
    if (&domain == last) table.remark("<- last");
  }

  static std::string before(const PauseDetails& of, const StwSection& section, const StwDomain& domain) {
    if (!section.leader_seen || domain.before.time.total() == 0) return "-";
    TextBuffer text;
    std::string_view separator;
    const TimeSplit& split = domain.before.time;
    const auto state = [&](std::string_view name, std::uint64_t ns) {
      if (ns == 0) return;
      print(text, "{}{} {}", separator, name, Duration{ns});
      separator = ", ";
    };
    state("ran", split.on_cpu);
    state("blocked", split.blocked());
    state("unknown", split.unknown);
    state("no CPU", split.runnable);
    const CpuWait& wait = domain.before.longest_wait;
    if (wait.ns > 0) print(text, " {}", Behind{wait, of.domain.pid});
    return std::string{text.text()};
  }

  /// "+1.23ms" after the begin, or "-" if there is no such time.
  static void offset(TextTable& table, std::uint64_t time_ns, std::uint64_t begin_ns) {
    TextBuffer text;
    if (time_ns == 0) {
      text.add('-');
    } else {
      text.add(time_ns < begin_ns ? '-' : '+');
      add_duration(text, time_ns < begin_ns ? begin_ns - time_ns : time_ns - begin_ns);
    }
    table.cell(text.text());
  }

  void unfinished() {
    if (report_.unfinished.empty()) return;
    out_.add("\npauses of unknown length\n");
    for (const UnfinishedPause& pause : report_.unfinished) {
      const std::string_view bound = pause.reason == Unfinished::ended ? "at least" : "at most";
      print(out_, "    {:8} {:>{}}  {} (pid {}) domain {}, {}, at {}: {}\n", bound,
            Duration{pause.until_ns - pause.begin_ns}, duration_width, Quoted{pause.comm}, pause.domain.pid,
            DomainName{pause.domain.domain, pause.domain.incarnation}, PhaseName{pause.domain.family, pause.root},
            Moment{pause.begin_ns, report_.start_ns}, reason_text(pause.reason));
    }
  }

  static std::string_view reason_text(Unfinished reason) {
    switch (reason) {
      case Unfinished::lost:
        return "words of its ring were lost during it";
      case Unfinished::no_end:
        return "its end was not seen";
      case Unfinished::clock:
        return "its clock went back";
      case Unfinished::ended:
        return "it was open when the domain, the ring or the run ended";
    }
    return "unknown";
  }

  const PausesReport& report_;
  TextBuffer out_;
};

}  // namespace

std::string report_text(const PausesReport& report) {
  return Report{report}.text();
}

}  // namespace rtev
