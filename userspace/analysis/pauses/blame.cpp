// SPDX-License-Identifier: MIT
#include "analysis/pauses/blame.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/pauses/pause_words.hpp"
#include "base/escape.hpp"
#include "base/units.hpp"

namespace rtev {
namespace {

Why largest(const TimeSplit& time) {
  const std::array parts{std::pair{time.runnable, Why::no_cpu}, std::pair{time.blocked(), Why::blocked},
                         std::pair{time.on_cpu, Why::ran}, std::pair{time.unknown, Why::unknown}};
  const auto& [ns, why] = *std::ranges::max_element(parts, {}, [](const auto& part) { return part.first; });
  return ns == 0 ? Why::unknown : why;
}

Why why_late(const StwSection& section, const StwDomain& domain) {
  if (!section.leader_seen) return Why::unknown;
  if (!domain.leads && domain.role == ThreadRole::backup) return Why::backup_thread;
  const Why why = largest(domain.before.time);
  return domain.leads && why == Why::ran ? Why::leader : why;
}

class Sentence {
 public:
  Sentence(const PauseDetails& pause, const Blame& blame, SwitchesSeen seen)
      : pause_(pause), blame_(blame), seen_(seen) {}

  std::string text() {
    switch (blame_.cause) {
      case Cause::work:
        out_.add("worked on a cpu for ");
        share();
        busiest_phase();
        break;
      case Cause::no_cpu:
        no_cpu();
        break;
      case Cause::late_domain:
      case Cause::slow_domain:
        waited();
        break;
      case Cause::blocked_in_section:
        own_thread();
        out_.add(" was blocked for ");
        share();
        out_.add(" in a stop-the-world section, at a later barrier between its domains or for a lock");
        break;
      case Cause::blocked:
        own_thread();
        out_.add(" was blocked for ");
        share();
        blocked_how(pause_.besides);
        out_.add(", not for other domains");
        break;
      case Cause::unknown:
        unknown();
        break;
    }
    return std::string{out_.text()};
  }

 private:
  void time(std::uint64_t ns) { add_duration(out_, ns); }

  /// "2.98ms of 3.21ms (93%)"
  void share() { share(blame_.ns); }
  void share(std::uint64_t ns) {
    time(ns);
    out_.add(" of ");
    time(pause_.duration_ns());
    out_.add(" (");
    add_percent(out_, ns, pause_.duration_ns());
    out_.add(')');
  }

  /// Figures that are not worth telling both.
  static bool looks_like(std::uint64_t a_ns, std::uint64_t b_ns) {
    TextBuffer a, b;
    add_duration(a, a_ns);
    add_duration(b, b_ns);
    return a.text() == b.text();
  }

  void own_thread() {
    if (pause_.tid != 0) {
      out_.add("its thread ", pause_.tid);
    } else {
      out_.add("its thread");
    }
  }

  void busiest_phase() {
    const StwPhases& phases = StwPhases::of(pause_.domain.family);
    const PhaseTree::Node* busiest = nullptr;
    for (const PhaseTree::Node& node : pause_.phases.nodes()) {
      if (node.phase == phases.start_barrier || node.phase == phases.minor_barrier) continue;
      if (!busiest || node.own_ns > busiest->own_ns) busiest = &node;
    }
    if (!busiest) return;
    out_.add(", most of the pause in ");
    add_phase(out_, pause_.domain.family, busiest->phase);
    out_.add(" (");
    time(busiest->own_ns);
    out_.add(" without the phases inside)");
  }

  void no_cpu() {
    own_thread();
    out_.add(" could run but had no cpu for ");
    // The competitors are known of all the time without a cpu, also of that in which it waited for domains anyway.
    const std::uint64_t whole = pause_.time.runnable;
    share(whole);
    if (!looks_like(blame_.ns, whole)) {
      out_.add(", ");
      time(blame_.ns);
      out_.add(" of it outside its waits for other domains");
    }
    const auto competitors = pause_.scheduling.competitors();
    if (competitors.empty()) return;
    const SchedulingDetail::CpuCompetitor& worst = competitors.front();
    const bool alone = looks_like(worst.wait.ns, whole);
    out_.add(": ");
    if (!alone) {
      out_.add("for ");
      time(worst.wait.ns);
      out_.add(" of it ");
    }
    competitor(worst.wait);
    if (worst.times > 1) {
      out_.add(" (");
      out_.add_grouped(worst.times);
      out_.add(" times)");
    }
    if (competitors.size() > 1 && worst.wait.ns < whole - whole / 10) out_.add("; for the rest others");
    hint(worst.wait);
  }

  /// `"stress" (pid 99) had cpu 1`, and how much of that is certain.
  void competitor(const CpuWait& wait) {
    if (!wait.by) {
      out_.add("others had ");
      cpu(wait.cpu);
      return;
    }
    const bool idle = wait.by->tid == 0;
    if (idle) {
      cpu(wait.cpu);
      out_.add(" was idle");
    } else {
      add_thread(out_, *wait.by, pause_.domain.pid);
      out_.add(" had ");
      cpu(wait.cpu);
    }
    switch (wait.had) {
      case CpuWait::Had::throughout:
        if (idle) out_.add(", as when a limit on cpu time holds a thread back or a cpu is slow to wake up");
        break;
      case CpuWait::Had::first:
        out_.add(" first, perhaps others after that");
        break;
      case CpuWait::Had::last:
        out_.add(" last, perhaps others before that");
        break;
    }
  }

  /// Where it matters that not all switches are traced.
  void hint(const CpuWait& wait) {
    constexpr std::uint64_t notable = 10;  // a tenth of the pause
    const bool certain = wait.by && wait.had == CpuWait::Had::throughout;
    if (certain || seen_ != SwitchesSeen::ocaml || wait.ns < pause_.duration_ns() / notable) return;
    out_.add(" (--sched all names everyone who had it)");
  }

  void cpu(std::int32_t number) {
    if (number < 0) {
      out_.add("the cpu");
    } else {
      out_.add("cpu ", number);
    }
  }

  void blocked_how(const TimeSplit& split) {
    if (split.uninterruptible > split.sleeping) out_.add(" in the kernel without a way to wake it (a disk as a rule)");
    if (split.stopped > split.sleeping + split.uninterruptible) out_.add(", stopped by a signal or a debugger");
  }

  void waited() {
    out_.add("waited ");
    share();
    const bool late = blame_.cause == Cause::late_domain;
    if (!blame_.domain) {
      out_.add(late ? " for other domains to come to a stop-the-world section"
                    : " for other domains to end their part of the minor collection");
      out_.add("; which one was last is not known");
      return;
    }
    const StwDomain& other = *blame_.domain;
    const bool several = pause_.section_count > 1 && blame_.ns > wait_there() + wait_there() / 100;
    out_.add(" for ", several ? "other domains, most of it for " : "", "domain ", other.domain);
    out_.add(late ? " to stop" : " to end its part of the minor collection");
    const ThreadActivity& activity = late ? other.before : other.minor;
    switch (blame_.why) {
      case Why::no_cpu:
        out_.add(": its thread ", other.tid, " could run but had no cpu for ");
        time(activity.time.runnable);
        longest(activity.longest_wait, activity.time.runnable);
        break;
      case Why::backup_thread:
        out_.add(", which was in a blocking section: its backup thread ", other.tid, " came after ");
        time(other.arrived_ns - std::min(other.arrived_ns, blame_.part->section->begin_ns));
        out_.add(" (");
        time(activity.time.blocked());
        out_.add(" asleep, ");
        time(activity.time.runnable);
        out_.add(" without a cpu, ");
        time(activity.time.on_cpu);
        out_.add(" running)");
        longest(activity.longest_wait, activity.time.runnable);
        break;
      case Why::blocked:
        out_.add(": its thread ", other.tid, " was blocked for ");
        time(activity.time.blocked());
        blocked_how(activity.time);
        break;
      case Why::leader:
        out_.add(", which leads and took ");
        time(other.arrived_ns - std::min(other.arrived_ns, blame_.part->section->begin_ns));
        out_.add(" to ask the others");
        break;
      case Why::ran:
        out_.add(late ? ", which ran for " : ", which worked for ");
        time(activity.time.on_cpu);
        out_.add(late ? " until it came to a safepoint" : " in it");
        break;
      case Why::none:
      case Why::unknown:
        out_.add("; what its thread did until then is not known");
        break;
    }
    doubts();
  }

  std::uint64_t wait_there() const {
    return blame_.cause == Cause::late_domain ? blame_.part->start_wait_ns : blame_.part->finish_wait_ns;
  }

  void longest(const CpuWait& wait, std::uint64_t all_ns) {
    if (wait.ns == 0) return;
    out_.add(", ");
    if (!looks_like(wait.ns, all_ns)) {
      out_.add("for ");
      time(wait.ns);
      out_.add(" of it ");
    } else {
      out_.add("while ");
    }
    competitor(wait);
    hint(wait);
  }

  void doubts() {
    const StwSection& section = *blame_.part->section;
    if (!section.lost_domains.empty()) {
      out_.add("; words of the ring of domain ", section.lost_domains.front());
      if (section.lost_domains.size() > 1) out_.add(" and ", section.lost_domains.size() - 1, " more");
      out_.add(" were lost, so another may have been later");
    } else if (section.unnamed > 0) {
      out_.add("; ", section.unnamed, " more domains are not told apart");
    }
  }

  void unknown() {
    if (seen_ != SwitchesSeen::none) {
      out_.add("what its thread did is not known for ");
      share();
      out_.add(", as scheduler events are missing");
    } else {
      out_.add("whether its thread ran is not known, without scheduler events, for ");
      share();
    }
    busiest_phase();
  }

  const PauseDetails& pause_;
  const Blame& blame_;
  const SwitchesSeen seen_;
  TextBuffer out_;
};

}  // namespace

std::string_view to_string(Cause cause) {
  switch (cause) {
    case Cause::work:
      return "work";
    case Cause::no_cpu:
      return "no_cpu";
    case Cause::late_domain:
      return "late_domain";
    case Cause::slow_domain:
      return "slow_domain";
    case Cause::blocked_in_section:
      return "blocked_in_section";
    case Cause::blocked:
      return "blocked";
    case Cause::unknown:
      break;
  }
  return "unknown";
}

std::string_view to_string(Why why) {
  switch (why) {
    case Why::none:
      return "none";
    case Why::no_cpu:
      return "no_cpu";
    case Why::backup_thread:
      return "backup_thread";
    case Why::blocked:
      return "blocked";
    case Why::leader:
      return "leader";
    case Why::ran:
      return "ran";
    case Why::unknown:
      break;
  }
  return "unknown";
}

Blame blame_of(const PauseDetails& pause) {
  const Cause blocked = pause.blocked.section > pause.blocked.other ? Cause::blocked_in_section : Cause::blocked;
  const std::array parts{Blame{.cause = Cause::late_domain, .ns = pause.start_wait_ns},
                         Blame{.cause = Cause::slow_domain, .ns = pause.finish_wait_ns},
                         Blame{.cause = Cause::no_cpu, .ns = pause.besides.runnable},
                         Blame{.cause = blocked, .ns = pause.besides.blocked()},
                         Blame{.cause = Cause::work, .ns = pause.besides.on_cpu},
                         Blame{.cause = Cause::unknown, .ns = pause.besides.unknown}};
  Blame blame = *std::ranges::max_element(parts, {}, &Blame::ns);
  if (pause.sections.empty()) return blame;
  if (blame.cause == Cause::late_domain) {
    blame.part = &*std::ranges::max_element(pause.sections, {}, &PauseSection::start_wait_ns);
    blame.domain = blame.part->section->last_to_arrive();
    if (blame.domain) blame.why = why_late(*blame.part->section, *blame.domain);
  } else if (blame.cause == Cause::slow_domain) {
    blame.part = &*std::ranges::max_element(pause.sections, {}, &PauseSection::finish_wait_ns);
    blame.domain = blame.part->section->last_to_end_minor();
    if (blame.domain) blame.why = largest(blame.domain->minor.time);
  }
  return blame;
}

std::string blame_text(const PauseDetails& pause, const Blame& blame, SwitchesSeen seen) {
  return Sentence{pause, blame, seen}.text();
}

}  // namespace rtev
