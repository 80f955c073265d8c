// SPDX-License-Identifier: MIT
#include <array>

#include "analysis/pauses/blame.hpp"
#include "analysis/pauses/pauses_report.hpp"
#include "analysis/report_json.hpp"
#include "analysis/report_text.hpp"
#include "analysis/seen_stacks_json.hpp"
#include "analysis/utilization/utilization_report.hpp"

namespace rtev {
namespace {

class PausesJson {
 public:
  explicit PausesJson(const PausesReport& report) : report_(report) {}

  std::string text() {
    json_.object([&] {
      add_head(json_, "pauses", report_);
      add_own_share(json_, report_.own);
      json_.member("min_ns", report_.min_ns);
      json_.member("top", report_.top);
      counts();
      add_utilization(json_, report_.utilization, is_unknown());
      groups();
      if (report_.is_unknown()) {
        json_.member("pauses", std::optional<int>{});
      } else {
        json_.key("pauses").array([&] {
          for (const PauseDetails* const of : report_.worst) json_.object([&] { pause(*of); });
        });
      }
      if (is_unknown()) return json_.member("unfinished", std::optional<int>{});
      json_.key("unfinished").array([&] {
        for (const UnfinishedPause& of : report_.unfinished) json_.object([&] { unfinished(of); });
      });
    });
    return std::string{json_.text()} + '\n';
  }

 private:
  bool is_unknown() const { return report_.is_unknown(); }

  void counts() {
    const PausesReport::Counts& counts = report_.counts;
    json_.key("counts").object([&] {
      json_.member("pauses", known_count(counts.pauses, is_unknown()));
      json_.member("long_enough", known_count(counts.long_enough, is_unknown()));
      json_.member("represented", known_count(counts.represented, is_unknown()));
      if (is_unknown()) {
        json_.member("unfinished", std::optional<int>{});
      } else {
        add_unfinished(json_, counts.unfinished);
      }
      json_.member("ends_without_begin", known_count(counts.ends_without_begin, is_unknown()));
      json_.member("ignored_events", known_count(counts.ignored_events, is_unknown()));
      json_.member("lost_words",
                   known_count(counts.lost_words, report_.truncated || is_unknown() || counts.unprobed > 0));
      json_.member("unprobed", known_count(counts.unprobed, report_.truncated));
      json_.member("rings_missed", known_count(counts.rings_missed, report_.truncated));
      json_.member("words_before", known_count(counts.words_before, report_.truncated));
      json_.member("scheduler_seen", counts.scheduler_seen);
      json_.member("all_switches_seen", known_flag(counts.all_switches_seen, !counts.scheduler_seen));
      add_sched_dropped(json_, "scheduler_dropped", counts.scheduler_dropped, counts.scheduler_seen, report_.truncated);
      json_.member("scheduler_contradictions", known_count(counts.scheduler_contradictions, !counts.scheduler_seen));
    });
  }

  void groups() {
    const LongPauses& found = report_.long_pauses;
    json_.member("long_ns", known_count(found.least_ns, is_unknown()));
    json_.member("long_pauses", known_count(found.count, is_unknown()));
    json_.member("ungrouped", known_count(found.ungrouped, is_unknown()));
    if (is_unknown()) return json_.member("groups", std::optional<int>{});
    json_.key("groups").array([&] {
      for (const CauseGroup& group : found.groups) json_.object([&] { add(group); });
    });
  }

  void add(const CauseGroup& group) {
    const CauseKey& key = group.key;
    json_.member("pid", group.worst->domain.pid);
    json_.member("comm", group.worst->comm);
    json_.member("several_processes", group.several_processes);
    json_.member("cause", to_string(key.cause));
    json_.member("why", to_string(key.why));
    json_.member("domain", key.domain < 0 ? std::nullopt : std::optional{key.domain});
    if (key.phase) {
      phase("phase", group.worst->domain.family, *key.phase);
    } else {
      json_.member("phase", std::optional<int>{});
    }
    json_.member("pauses", group.count);
    json_.member("total_ns", group.total_ns);
    json_.member("least_ns", group.least_ns);
    json_.member("greatest_ns", group.greatest_ns);
    json_.member("worst_begin_ns", group.worst->begin_ns);
    json_.key("cpu_had_by").array([&] {
      for (const CpuHolder& holder : group.holders) {
        json_.object([&] {
          json_.member("comm", holder.comm.empty() ? group.worst->comm : holder.comm);
          json_.member("ns", holder.ns);
        });
      }
      const std::uint64_t unknown_ns = group.unknown_holders_ns + group.unseen_ns;
      if (unknown_ns == 0) return;
      json_.object([&] {
        json_.text_or_null("comm", "");
        json_.member("ns", unknown_ns);
      });
    });
  }

  void domain(const DomainLife& life, std::string_view comm) {
    json_.member("pid", life.pid);
    json_.member("comm", comm);
    json_.member("domain", life.domain);
    json_.member("incarnation", life.incarnation);
  }

  void phase(std::string_view key, Family family, std::uint16_t id) {
    TextBuffer name;
    append(name, PhaseName{family, id});
    json_.member(key, name.text());
  }

  /// Null if the thread is unknown.
  void thread(std::int32_t tid, ThreadRole role) {
    json_.member("tid", tid == 0 ? std::nullopt : std::optional{tid});
    json_.member("role", to_string(role));
  }

  void pause(const PauseDetails& of) {
    domain(of.domain, of.comm);
    thread(of.tid, of.role);
    phase("phase", of.domain.family, of.root);
    json_.member("begin_ns", of.begin_ns);
    json_.member("duration_ns", of.duration_ns());
    json_.member("late", of.late);
    if (!of.task.empty()) json_.member("task", of.task);
    blame(of);
    add_split(json_, "time_ns", of.time);
    json_.key("blocked_ns").object([&] {
      const bool is_unknown = !report_.counts.scheduler_seen;
      json_.member("barrier", known_count(of.blocked.barrier, is_unknown));
      json_.member("section", known_count(of.blocked.section, is_unknown));
      json_.member("other", known_count(of.blocked.other, is_unknown));
    });
    json_.member("start_wait_ns", of.start_wait_ns);
    json_.member("finish_wait_ns", of.finish_wait_ns);
    add_split(json_, "besides_ns", of.besides);
    scheduling(of.scheduling);
    add_seen_stacks(json_.key("stacks"), of.stacks, *report_.stacks);
    phases(of);
    json_.member("section_count", of.section_count);
    json_.key("sections").array([&] {
      for (const PauseSection& part : of.sections) json_.object([&] { section(part); });
    });
    json_.key("lost_domains").array([&] {
      for (const std::uint16_t lost : of.lost_domains) json_.value(lost);
    });
  }

  void blame(const PauseDetails& of) {
    const Blame blame = blame_of(of);
    json_.key("blame").object([&] {
      json_.member("cause", to_string(blame.cause));
      json_.member("ns", blame.ns);
      json_.member("why", to_string(blame.why));
      json_.member("section", blame.part ? std::optional{blame.part->section->id} : std::nullopt);
      json_.member("domain", blame.domain ? std::optional{blame.domain->domain} : std::nullopt);
      const std::string text = blame_text(of, blame, report_.counts.switches_seen(), *report_.stacks);
      json_.member("text", std::string_view{text});
    });
  }

  void named(const Thread& thread) {
    json_.member("pid", thread.pid);
    json_.member("tid", thread.tid);
    json_.member("comm", thread.comm());
  }

  void wait(const CpuWait& wait) {
    json_.member("ns", known_count(wait.ns, !report_.counts.scheduler_seen));
    json_.member("cpu", wait.cpu < 0 ? std::nullopt : std::optional{wait.cpu});
    constexpr std::array<std::string_view, 4> had{"throughout", "first", "last", "first_and_last"};
    json_.text_or_null("had", wait.by ? had[static_cast<std::size_t>(wait.had)] : "");
    if (wait.by) {
      json_.key("by").object([&] { named(*wait.by); });
    } else {
      json_.member("by", std::optional<int>{});
    }
  }

  void scheduling(const SchedulingDetail& detail) {
    const bool is_unknown = !report_.counts.scheduler_seen;
    json_.member("preempted", known_count(detail.preempted(), is_unknown));
    json_.member("blocked", known_count(detail.blocked(), is_unknown));
    json_.member("longest_block_ns", known_count(detail.longest_block_ns(), is_unknown));
    json_.member("woken", known_count(detail.woken(), is_unknown));
    json_.member("migrations", known_count(detail.migrations(), is_unknown));
    json_.key("waits_for_cpu").array([&] {
      for (const SchedulingDetail::CpuCompetitor& competitor : detail.competitors()) {
        json_.object([&] {
          json_.member("times", competitor.times);
          wait(competitor.wait);
          add_seen_stacks(json_.key("stacks"), competitor.stacks, *report_.stacks);
        });
      }
    });
    json_.member("other_waits_for_cpu_ns", known_count(detail.other_competitors_ns(), is_unknown));
    json_.member("unknown_waits_for_cpu_ns", known_count(detail.unknown_competitors_ns(), is_unknown));
    json_.key("wakers").array([&] {
      for (const SchedulingDetail::Waker& waker : detail.wakers()) {
        json_.object([&] {
          json_.member("times", waker.times);
          named(waker.thread);
        });
      }
    });
  }

  void phases(const PauseDetails& of) {
    json_.key("phases").array([&] {
      for (const PhaseTree::Node* const node : of.phases.in_depth()) {
        json_.object([&] {
          phase("name", of.domain.family, node->phase);
          json_.member("depth", node->depth);
          json_.member("count", node->count);
          json_.member("total_ns", node->total_ns);
          json_.member("own_ns", node->own_ns);
        });
      }
    });
    json_.member("folded_phases", of.phases.folded());
  }

  void section(const PauseSection& part) {
    const StwSection& section = *part.section;
    const auto number = [](const StwDomain* of) { return of ? std::optional{of->domain} : std::nullopt; };
    json_.member("id", section.id);
    json_.member("begin_ns", section.begin_ns);
    json_.member("leader_seen", section.leader_seen);
    json_.member("has_barrier", section.has_barrier);
    json_.member("start_wait_ns", part.start_wait_ns);
    json_.member("finish_wait_ns", part.finish_wait_ns);
    json_.member("last_to_arrive", number(section.last_to_arrive()));
    json_.member("last_to_end_minor", number(section.last_to_end_minor()));
    json_.member("unnamed_domains", section.unnamed);
    json_.key("lost_domains").array([&] {
      for (const std::uint16_t lost : section.lost_domains) json_.value(lost);
    });
    json_.key("domains").array([&] {
      for (const StwDomain& of : section.domains) json_.object([&] { participant(of, section.leader_seen); });
    });
  }

  void participant(const StwDomain& of, bool leader_seen) {
    const auto seen = [](std::uint64_t time) { return time == 0 ? std::nullopt : std::optional{time}; };
    json_.member("domain", of.domain);
    json_.member("leads", of.leads);
    thread(of.tid, of.role);
    if (!of.task.empty()) json_.member("task", of.task);
    json_.member("arrived_ns", seen(of.arrived_ns));
    json_.member("passed_ns", seen(of.passed_ns));
    json_.member("minor_begin_ns", seen(of.minor_begin_ns));
    json_.member("minor_end_ns", seen(of.minor_end_ns));
    json_.member("minor_passed_ns", seen(of.minor_passed_ns));
    json_.member("left_ns", seen(of.left_ns));
    activity("before", of.before, leader_seen);
    activity("minor", of.minor, of.minor_end_ns != 0);
    if (of.pause_begin_ns == 0) return json_.member("pause", std::optional<int>{});
    json_.key("pause").object([&] {
      json_.member("begin_ns", of.pause_begin_ns);
      json_.member("duration_ns", of.pause_ns);
      add_split(json_, "time_ns", of.pause_time);
    });
  }

  void activity(std::string_view key, const ThreadActivity& activity, bool is_seen) {
    if (!is_seen) return json_.member(key, std::optional<int>{});
    json_.key(key).object([&] {
      add_split(json_, "time_ns", activity.time);
      json_.key("longest_wait").object([&] { wait(activity.longest_wait); });
      add_seen_stacks(json_.key("stacks"), activity.stacks, *report_.stacks);
      add_seen_stacks(json_.key("holder_stacks"), activity.holder_stacks, *report_.stacks);
    });
  }

  void unfinished(const UnfinishedPause& of) {
    domain(of.domain, of.comm);
    phase("phase", of.domain.family, of.root);
    json_.member("begin_ns", of.begin_ns);
    json_.member("until_ns", of.until_ns);
    json_.member("reason", to_string(of.reason));
  }

  const PausesReport& report_;
  JsonWriter json_;
};

}  // namespace

std::string report_json(const PausesReport& report) {
  return PausesJson{report}.text();
}

}  // namespace rtev
