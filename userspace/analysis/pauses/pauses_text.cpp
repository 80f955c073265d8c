// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "analysis/pauses/blame.hpp"
#include "analysis/pauses/pause_words.hpp"
#include "analysis/pauses/pauses_report.hpp"
#include "analysis/pauses/section_text.hpp"
#include "base/escape.hpp"
#include "base/text_table.hpp"
#include "base/units.hpp"

namespace rtev {
namespace {

constexpr std::size_t phase_width = 40, count_width = 8;
constexpr std::uint64_t least_share_of_phase = 1000;  // a thousandth of the pause
constexpr std::size_t max_phases = 24, max_competitors = 4;

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
    if (report_.worst.empty()) {
      out_.add(counts.pauses == 0 ? "" : "none of ");
    } else if (report_.worst.size() == 1) {
      out_.add("the worst of ");
    } else {
      out_.add("the ", report_.worst.size(), " worst of ");
    }
    if (counts.pauses == 0) {
      out_.add("no pauses");
    } else {
      if (counts.words_before > 0) out_.add("at least ");
      add_counted(out_, counts.pauses, "pause", "pauses");
    }
    if (report_.min_ns > 0 && counts.pauses > 0) {
      if (!report_.worst.empty()) {
        out_.add(", of which ");
        out_.add_grouped(counts.long_enough);
      }
      out_.add(" lasted ");
      add_duration(out_, report_.min_ns);
      out_.add(" or longer");
    }
    if (report_.end_ns > report_.start_ns) {
      out_.add(", in ");
      add_duration(out_, report_.end_ns - report_.start_ns);
    }
    out_.add('\n');
    if (counts.words_before > 0) {
      out_.add("!! BEFORE: ");
      add_counted(out_, counts.words_before, "word was", "words were");
      out_.add(" overwritten before the ring was read, and with them the pauses they told of\n");
    }
    if (counts.represented > 0) {
      add_counted(out_, counts.represented, "more is", "more are");
      out_.add(" told of in their stop-the-world sections, below\n");
    }
  }

  void warnings() {
    const PausesReport::Counts& counts = report_.counts;
    const auto unfinished_for = [&](Unfinished reason) { return counts.unfinished[static_cast<std::size_t>(reason)]; };
    if (counts.lost_words > 0 || counts.unprobed > 0) {
      out_.add("!! LOST: ");
      if (counts.lost_words > 0) add_counted(out_, counts.lost_words, "word of a ring", "words of rings");
      if (counts.lost_words > 0 && counts.unprobed > 0) out_.add(" and ");
      if (counts.unprobed > 0) {
        out_.add("what came, unprobed, in ");
        add_counted(out_, counts.unprobed, "gap", "gaps");
      }
      out_.add(", and with them ");
      add_counted(out_, unfinished_for(Unfinished::lost), "pause that had begun", "pauses that had begun");
      out_.add(" and those that lay in the gap\n");
    }
    if (counts.rings_missed > 0) {
      out_.add("!! NOT READ: ");
      add_counted(out_, counts.rings_missed, "ring", "rings");
      out_.add('\n');
    }
    if (counts.ignored_events > 0) {
      out_.add("!! NOT FOLLOWED: ");
      add_counted(out_, counts.ignored_events, "phase", "phases");
      out_.add(" of more domains than can be followed at once, and with them their pauses\n");
    }
    if (counts.scheduler_dropped > 0) {
      out_.add("!! DROPPED: ");
      add_counted(out_, counts.scheduler_dropped, "scheduler event", "scheduler events");
      out_.add("; what threads did then is told as not known\n");
    }
    if (counts.scheduler_contradictions > 0) {
      out_.add("!! MISSING: switches, for ");
      add_counted(out_, counts.scheduler_contradictions, "switch", "switches");
      out_.add(" cannot follow those before; what threads did in between is told as not known\n");
    }
    if (!counts.scheduler_seen) {
      out_.add("no scheduler events: whether threads ran or waited is not known\n");
    }
  }

  void pause(std::size_t rank, const PauseDetails& of) {
    out_.add("\n#", rank, "  ");
    add_duration(out_, of.duration_ns());
    out_.add("  ");
    add_quoted(out_, of.comm);
    out_.add(" (pid ", of.domain.pid, ") domain ", of.domain.domain);
    add_incarnation(out_, of.domain.incarnation);
    if (of.tid != 0) {
      out_.add(", thread ", of.tid);
      if (of.role != ThreadRole::unknown) out_.add(" (", to_string(of.role), ')');
    }
    out_.add(", at ");
    add_moment(out_, of.begin_ns, report_.start_ns);
    out_.add("\n    blame: ", blame_text(of, blame_of(of), report_.counts.switches_seen()), ".\n");
    times(of);
    waits_for_cpu(of);
    doubts(of);
    phases(of);
    sections(of);
  }

  void part(std::string_view name, std::uint64_t ns, std::uint64_t of_ns) {
    out_.add("  ", name, ' ');
    add_duration(out_, ns);
    out_.add(" (");
    add_percent(out_, ns, of_ns);
    out_.add(')');
  }

  void times(const PauseDetails& of) {
    const std::uint64_t whole = of.duration_ns();
    out_.add("\n    time    ");
    part("on cpu", of.time.on_cpu, whole);
    part("runnable", of.time.runnable, whole);
    part("blocked", of.time.blocked(), whole);
    part("not known", of.time.unknown, whole);
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

  void waits_for_cpu(const PauseDetails& of) {
    const SchedulingDetail& detail = of.scheduling;
    if (detail.preempted() + detail.blocked() + detail.woken() + detail.migrations() > 0) {
      out_.add("    turns     preempted ");
      add_counted(out_, detail.preempted(), "time", "times");
      out_.add(", blocked ");
      add_counted(out_, detail.blocked(), "time", "times");
      if (detail.blocked() > 0) {
        out_.add(" (longest ");
        add_duration(out_, detail.longest_block_ns());
        out_.add(')');
      }
      out_.add(", woken ");
      add_counted(out_, detail.woken(), "time", "times");
      wakers(of);
      out_.add(", moved to another cpu ");
      add_counted(out_, detail.migrations(), "time", "times");
      out_.add('\n');
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
    if (rest > 0) {
      out_.add("    no cpu    for ");
      add_duration(out_, rest);
      out_.add(" behind others\n");
    }
    if (detail.unknown_competitors_ns() > 0) {
      out_.add("    no cpu    for ");
      add_duration(out_, detail.unknown_competitors_ns());
      out_.add(", behind whom is not known\n");
    }
  }

  void wakers(const PauseDetails& of) {
    const auto wakers = of.scheduling.wakers();
    if (wakers.empty()) return;
    out_.add(" (by ");
    add_thread(out_, wakers.front().thread, of.domain.pid);
    if (wakers.size() > 1) out_.add(" and ", wakers.size() - 1, " more");
    out_.add(')');
  }

  void competitor(const SchedulingDetail::CpuCompetitor& competitor, std::int32_t own_pid) {
    out_.add("    no cpu    for ");
    add_duration(out_, competitor.wait.ns);
    out_.add(", ");
    add_counted(out_, competitor.times, "time", "times");
    if (competitor.wait.cpu >= 0) out_.add(", cpu ", competitor.wait.cpu);
    add_behind(out_, competitor.wait, own_pid);
    out_.add('\n');
  }

  void doubts(const PauseDetails& of) {
    if (of.late) out_.add("    !! its events came late: what the scheduler did meanwhile is not certain\n");
    if (!of.lost_domains.empty()) {
      out_.add("    !! words of the rings of other domains were lost meanwhile: domain");
      for (const std::uint16_t lost : of.lost_domains) out_.add(' ', lost);
      out_.add('\n');
    }
  }

  void phases(const PauseDetails& of) {
    const auto nodes = of.phases.in_depth();
    // Of very many those that take longest, each in its place.
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
      add_phase(name, of.domain.family, node->phase);
      table.row();
      table.cell(name.text());
      table.cell(node->count);
      table.duration(node->total_ns);
      table.duration(node->own_ns);
    }
    out_.add('\n');
    table.write(out_);
    const std::uint64_t others = nodes.size() - shown + of.phases.folded();
    if (others > 0) {
      out_.add("    and ");
      add_counted(out_, others, "more that took less", "more that took less");
      out_.add('\n');
    }
  }

  void sections(const PauseDetails& of) {
    std::vector<const PauseSection*> parts;
    for (const PauseSection& part : of.sections) {
      if (part.section->domains.size() + part.section->unnamed > 1) parts.push_back(&part);
    }
    // A pause of many: those where it waited longest.
    std::ranges::sort(parts, std::ranges::greater{}, [](const PauseSection* part) {
      return std::pair(part->start_wait_ns + part->finish_wait_ns, part->section->id);
    });
    for (const PauseSection* const part : parts) add_section(out_, of, *part, report_.start_ns);
    if (of.section_count > of.sections.size()) {
      out_.add("\n    and ");
      add_counted(out_, of.section_count - of.sections.size(), "more stop-the-world section",
                  "more stop-the-world sections");
      out_.add(" in this pause\n");
    }
  }

  void unfinished() {
    if (report_.unfinished.empty()) return;
    out_.add("\npauses whose length is not known\n");
    for (const UnfinishedPause& pause : report_.unfinished) {
      out_.add("    ");
      const bool at_least = pause.reason == Unfinished::ended;
      out_.add(at_least ? "at least " : "at most  ");
      add_duration_column(out_, pause.until_ns - pause.begin_ns);
      out_.add("  ");
      add_quoted(out_, pause.comm);
      out_.add(" (pid ", pause.domain.pid, ") domain ", pause.domain.domain);
      add_incarnation(out_, pause.domain.incarnation);
      out_.add(", ");
      add_phase(out_, pause.domain.family, pause.root);
      out_.add(", at ");
      add_moment(out_, pause.begin_ns, report_.start_ns);
      switch (pause.reason) {
        case Unfinished::lost:
          out_.add(": words of its ring were lost in it");
          break;
        case Unfinished::no_end:
          out_.add(": its end was not seen");
          break;
        case Unfinished::clock:
          out_.add(": its clock went back");
          break;
        case Unfinished::ended:
          out_.add(": it lasted when the domain, the ring or the run ended");
          break;
      }
      out_.add('\n');
    }
  }

  const PausesReport& report_;
  TextBuffer out_;
};

}  // namespace

std::string report_text(const PausesReport& report) {
  return Report{report}.text();
}

}  // namespace rtev
