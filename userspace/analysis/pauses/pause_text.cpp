// SPDX-License-Identifier: MIT
// A pause taken apart, as `pauses --full` shows it.
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/pauses/pauses_report.hpp"
#include "analysis/report_text.hpp"
#include "base/text_table.hpp"
#include "stream/stack_text.hpp"

namespace rtev {
namespace {

constexpr std::size_t phase_width = 40, count_width = 8, thread_width = 17;
constexpr std::uint64_t least_share_of_phase = 1000;  // a thousandth of the pause
constexpr std::size_t max_frames = 12, max_phases = 24, max_competitors = 4, max_domains = 16;

class Details {
 public:
  Details(TextBuffer& out, std::uint64_t start_ns, const StackTable& stacks)
      : out_(out), start_ns_(start_ns), stacks_(stacks) {}

  void add(const PauseDetails& of) {
    durations(of);
    scheduling(of);
    stacks(of.stacks);
    uncertainties(of);
    phases(of);
    sections(of);
  }

 private:
  void part(std::string_view name, std::uint64_t ns, std::uint64_t of_ns) {
    if (ns == 0) return;
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

  /// What its thread was seen in, each with its callers.
  void stacks(const std::vector<SeenStack>& all) {
    for (const SeenStack& seen : all) {
      print(out_, "    {} {}  ", Counted{seen.samples, "sample", "samples"}, to_string(seen.kind));
      std::string_view before;
      std::size_t frames = 0;
      stacks_.for_each_frame(seen.stack, [&](FrameIndex, const StackFrame& frame) {
        if (++frames > max_frames) return;
        out_.add(before);
        add_frame(out_, frame);
        before = " < ";
      });
      out_.add(frames > max_frames ? " < ...\n" : "\n");
    }
  }

  void uncertainties(const PauseDetails& of) {
    if (of.late) out_.add("    warning: its events arrived late; its scheduling is uncertain\n");
    if (!of.lost_domains.empty())
      print(out_, "    warning: events of other domains were lost: {}\n", fmt::join(of.lost_domains, " "));
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
          section.leader_seen ? "requested at" : "leader unknown, from", Moment{section.begin_ns, start_ns_});
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
      print(out_, "    warning: events of domains were lost: {}\n", fmt::join(section.lost_domains, " "));
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

  TextBuffer& out_;
  const std::uint64_t start_ns_;
  const StackTable& stacks_;
};

}  // namespace

void add_details(TextBuffer& out, const PauseDetails& pause, std::uint64_t start_ns, const StackTable& stacks) {
  Details(out, start_ns, stacks).add(pause);
}

}  // namespace rtev
