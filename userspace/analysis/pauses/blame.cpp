// SPDX-License-Identifier: MIT
#include "analysis/pauses/blame.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/place_text.hpp"
#include "analysis/report_text.hpp"
#include "base/enum_names.hpp"
#include "stream/stw_phases.hpp"

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
  Sentence(const PauseDetails& pause, const Blame& blame, SwitchesSeen seen, const StackTable& stacks)
      : pause_(pause), blame_(blame), seen_(seen), stacks_(stacks) {}

  std::string text() {
    switch (blame_.cause) {
      case Cause::work:
        print(out_, "worked on a CPU for {}{}", share(), in_busiest_phase());
        where(pause_.stacks, SampleKind::on_cpu);
        break;
      case Cause::no_cpu:
        no_cpu();
        break;
      case Cause::late_domain:
      case Cause::slow_domain:
        waited();
        break;
      case Cause::blocked_in_section:
        print(out_, "{} was blocked for {} in a stop-the-world section, waiting at a later barrier or for a lock",
              own_thread(), share());
        where(pause_.stacks, SampleKind::off_cpu);
        break;
      case Cause::blocked:
        print(out_, "{} was blocked for {}{}, not for other domains", own_thread(), share(),
              blocked_how(pause_.besides));
        where(pause_.stacks, SampleKind::off_cpu);
        break;
      case Cause::unknown:
        unknown();
        break;
    }
    if (!blame_.domain && !pause_.task.empty()) print(out_, "; its domain ran {}", pause_.task);
    return std::string{out_.text()};
  }

 private:
  /// ": in Upload.store upload.ml:42"
  void where(const std::vector<SeenStack>& seen, SampleKind kind) {
    if (const std::string place = place_text(seen, kind, stacks_); !place.empty()) print(out_, ": in {}", place);
  }

  /// "2.98ms of 3.21ms (93%)"
  std::string share() const { return share(blame_.ns); }
  std::string share(std::uint64_t ns) const {
    return fmt::format("{} of {} ({})", Duration{ns}, Duration{pause_.duration_ns()},
                       Percent{ns, pause_.duration_ns()});
  }

  /// Then one of them is enough.
  static bool look_alike(std::uint64_t a_ns, std::uint64_t b_ns) {
    return fmt::format("{}", Duration{a_ns}) == fmt::format("{}", Duration{b_ns});
  }

  std::string own_thread() const { return pause_.tid != 0 ? fmt::format("its thread {}", pause_.tid) : "its thread"; }

  std::string in_busiest_phase() const {
    const PhaseTree::Node* const busiest = main_phase(pause_, Barriers::left_out);
    if (!busiest) return {};
    return fmt::format(", most of the pause in {} ({} without the phases inside)",
                       PhaseName{pause_.domain.family, busiest->phase}, Duration{busiest->own_ns});
  }

  /// What its thread did; the phases are known.
  void unknown() {
    const PhaseTree::Node* const busiest = busiest_phase(pause_, Barriers::counted);
    if (seen_ != SwitchesSeen::none || !busiest) {
      print(out_, "unknown for {}: {}{}", share(),
            seen_ != SwitchesSeen::none ? unknown_reason(blame_.why) : "no scheduler events", in_busiest_phase());
    } else {
      print(out_, "was in {} for {}, without the phases inside", PhaseName{pause_.domain.family, busiest->phase},
            share(busiest->own_ns));
      where(pause_.stacks, SampleKind::on_cpu);
    }
  }

  void no_cpu() {
    // The competitors are known for all the time without a cpu, also while it waited for domains.
    const std::uint64_t whole = pause_.time.runnable;
    print(out_, "{} could run but had no CPU for {}", own_thread(), share(whole));
    if (!look_alike(blame_.ns, whole))
      print(out_, ", {} of it outside its waits for other domains", Duration{blame_.ns});
    const auto competitors = pause_.scheduling.competitors();
    if (competitors.empty()) return;
    const SchedulingDetail::CpuCompetitor& worst = competitors.front();
    out_.add(": ");
    const bool is_most = worst.wait.is_most_of(whole);
    if (is_most && !look_alike(worst.wait.ns, whole)) print(out_, "for {} of it ", Duration{worst.wait.ns});
    if (const auto program = is_most ? std::nullopt : main_program(competitors, whole)) {
      print(out_, "for {} of it ", Duration{program->second});
      if (program->first.empty()) {
        out_.add("its own threads");
      } else {
        print(out_, "threads of {}", Quoted{program->first});
      }
      out_.add(" had it");
      return;
    }
    competitor(worst.wait, whole,
               std::ranges::any_of(competitors, &CpuWait::is_of_others, &SchedulingDetail::CpuCompetitor::wait));
    if (is_most) {
      if (worst.times > 1) print(out_, " ({} times)", Grouped{worst.times});
      where(worst.stacks, SampleKind::on_cpu);
      if (competitors.size() > 1 && worst.wait.ns < whole - whole / 10) out_.add("; other threads had it for the rest");
    }
    hint(worst.wait);
  }

  /// The program whose threads together had a CPU for most of the time, and how long. Without a name: its own.
  std::optional<std::pair<std::string, std::uint64_t>> main_program(
      const std::vector<SchedulingDetail::CpuCompetitor>& competitors, std::uint64_t whole_ns) const {
    std::map<std::string, std::uint64_t> programs;
    for (const auto& [wait, times, stacks] : competitors)
      if (wait.by && wait.by->tid != 0 && wait.had == CpuWait::Had::throughout)
        programs[wait.by->pid == pause_.domain.pid ? "" : std::string(wait.by->comm())] += wait.ns;
    const auto most = std::ranges::max_element(programs, {}, [](const auto& entry) { return entry.second; });
    if (most == programs.end() || most->second < whole_ns - whole_ns / 2) return std::nullopt;
    return *most;
  }

  /// `"stress" (pid 99) had CPU 1`; others, if it did not for most of the time `whole_ns`, and others are known to
  /// have.
  void competitor(const CpuWait& wait, std::uint64_t whole_ns, bool is_of_others) {
    const std::string cpu = wait.cpu < 0 ? "the CPU" : fmt::format("CPU {}", wait.cpu);
    if (!wait.is_most_of(whole_ns)) {
      print(out_, "{} {}{}", is_of_others ? "others had" : "who had", cpu, is_of_others ? "" : " is unknown");
    } else if (wait.by->tid == 0) {
      print(out_, "{} was idle, which a limit on CPU time or a slow wakeup of the CPU can cause", cpu);
    } else {
      print(out_, "{} had {}", ThreadName{*wait.by, pause_.domain.pid}, cpu);
    }
  }

  /// If it matters that not all switches are traced.
  void hint(const CpuWait& wait) {
    constexpr std::uint64_t notable = 10;  // a tenth of the pause
    const bool certain = wait.by && wait.had == CpuWait::Had::throughout;
    if (certain || seen_ != SwitchesSeen::ocaml || wait.ns < pause_.duration_ns() / notable) return;
    out_.add(wait.is_of_others() ? " (--sched all shows all of them)" : " (--sched all shows it)");
  }

  static std::string_view blocked_how(const TimeSplit& split) {
    if (split.stopped > split.sleeping + split.uninterruptible) return ", stopped by a signal or a debugger";
    if (split.uninterruptible > split.sleeping) return " in the kernel, uninterruptibly (usually on a disk)";
    return {};
  }

  void waited() {
    const bool late = blame_.cause == Cause::late_domain;
    print(out_, "waited {}", share());
    if (!blame_.domain) {
      print(out_, " for other domains to {}; the last one is unknown",
            late ? "arrive at a stop-the-world section" : "end their part of the minor collection");
      return;
    }
    const StwDomain& other = *blame_.domain;
    const bool several = pause_.section_count > 1 && blame_.ns > wait_there() + wait_there() / 100;
    print(out_, " for {}domain {} to {}", several ? "other domains, most of it for " : "", other.domain,
          late ? "stop" : "end its part of the minor collection");
    const ThreadActivity& activity = late ? other.before : other.minor;
    const std::uint64_t after_ns = other.arrived_ns - std::min(other.arrived_ns, blame_.part->section->begin_ns);
    switch (blame_.why) {
      case Why::no_cpu:
        print(out_, ": its thread {} could run but had no CPU for {}", other.tid, Duration{activity.time.runnable});
        longest(activity.longest_wait, activity.time.runnable);
        if (activity.longest_wait.is_most_of(activity.time.runnable)) where(activity.holder_stacks, SampleKind::on_cpu);
        also_ran(activity);
        in_task(other);
        break;
      case Why::backup_thread:
        print(out_,
              ", which was in a blocking section: its backup thread {} arrived after {} ({} asleep, {} without a CPU, "
              "{} running)",
              other.tid, Duration{after_ns}, Duration{activity.time.blocked()}, Duration{activity.time.runnable},
              Duration{activity.time.on_cpu});
        longest(activity.longest_wait, activity.time.runnable);
        break;
      case Why::blocked:
        print(out_, ": its thread {} was blocked for {}{}", other.tid, Duration{activity.time.blocked()},
              blocked_how(activity.time));
        in_task(other);
        where(activity.stacks, SampleKind::off_cpu);
        break;
      case Why::leader:
        print(out_, ", the leader, which took {} to ask the others", Duration{after_ns});
        break;
      case Why::ran:
        if (late) {
          print(out_, ", which ran for {} until it reached a safepoint", Duration{activity.time.on_cpu});
        } else {
          print(out_, ", which worked for {} in it", Duration{activity.time.on_cpu});
        }
        if (late) in_task(other);
        where(activity.stacks, SampleKind::on_cpu);
        break;
      case Why::none:
      case Why::late_events:
      case Why::lost_events:
      case Why::unknown:
        out_.add("; what its thread did until then is unknown");
        break;
    }
    uncertainties();
  }

  /// The task that kept the domain.
  void in_task(const StwDomain& domain) {
    if (!domain.task.empty()) print(out_, ", in {}", domain.task);
  }

  /// Where it was in the rest of the time, if that is much.
  void also_ran(const ThreadActivity& activity) {
    constexpr std::uint64_t much = 4;  // a quarter
    if (activity.time.on_cpu < activity.time.total() / much) return;
    const std::string place = place_text(activity.stacks, SampleKind::on_cpu, stacks_);
    if (!place.empty()) print(out_, "; it also ran for {} in {}", Duration{activity.time.on_cpu}, place);
  }

  std::uint64_t wait_there() const {
    return blame_.cause == Cause::late_domain ? blame_.part->start_wait_ns : blame_.part->finish_wait_ns;
  }

  void longest(const CpuWait& wait, std::uint64_t all_ns) {
    if (wait.ns == 0) return;
    if (!wait.is_most_of(all_ns) && !wait.is_of_others()) {
      out_.add("; ");
    } else if (!wait.is_most_of(all_ns) || look_alike(wait.ns, all_ns)) {
      out_.add(", while ");
    } else {
      print(out_, ", for {} of it ", Duration{wait.ns});
    }
    competitor(wait, all_ns, wait.is_of_others());
    hint(wait);
  }

  void uncertainties() {
    const StwSection& section = *blame_.part->section;
    if (!section.lost_domains.empty()) {
      print(out_, "; events of domain {}", section.lost_domains.front());
      if (section.lost_domains.size() > 1) print(out_, " and {} more", section.lost_domains.size() - 1);
      out_.add(" were lost, so another may have been later");
    } else if (section.unnamed > 0) {
      print(out_, "; {} more domains are not listed", section.unnamed);
    }
  }

  const PauseDetails& pause_;
  const Blame& blame_;
  const SwitchesSeen seen_;
  const StackTable& stacks_;
  TextBuffer out_;
};

}  // namespace

std::string_view to_string(Cause cause) {
  static constexpr std::string_view names[]{"work",    "no_cpu", "late_domain", "slow_domain", "blocked_in_section",
                                            "blocked", "unknown"};
  return name_at(names, cause);
}

std::string_view to_string(Why why) {
  static constexpr std::string_view names[]{"none", "no_cpu",      "backup_thread", "blocked", "leader",
                                            "ran",  "late_events", "lost_events",   "unknown"};
  return name_at(names, why);
}

std::string_view unknown_reason(Why why) {
  if (why == Why::late_events) return "runtime events came late";
  if (why == Why::lost_events) return "scheduler events were lost";
  return "no scheduler event says what its thread did";
}

const PhaseTree::Node* busiest_phase(const PauseDetails& pause, Barriers barriers) {
  const StwPhases& phases = StwPhases::of(pause.domain.family);
  const PhaseTree::Node* busiest = nullptr;
  for (const PhaseTree::Node& node : pause.phases.nodes()) {
    const bool is_barrier = node.phase == phases.start_barrier || node.phase == phases.minor_barrier;
    if (is_barrier && barriers == Barriers::left_out) continue;
    if (!busiest || node.own_ns > busiest->own_ns) busiest = &node;
  }
  return busiest;
}

const PhaseTree::Node* main_phase(const PauseDetails& pause, Barriers barriers) {
  const PhaseTree::Node* const busiest = busiest_phase(pause, barriers);
  return busiest && busiest->own_ns >= pause.duration_ns() / 2 ? busiest : nullptr;
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
  if (blame.cause == Cause::unknown && pause.unknown_as != PauseDetails::UnknownAs::none)
    blame.why = pause.unknown_as == PauseDetails::UnknownAs::late ? Why::late_events : Why::lost_events;
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

std::string blame_text(const PauseDetails& pause, const Blame& blame, SwitchesSeen seen, const StackTable& stacks) {
  return Sentence{pause, blame, seen, stacks}.text();
}

}  // namespace rtev
