// SPDX-License-Identifier: MIT
// The metrics that a MetricsSink has, by name. docs/metrics.md lists them.
#include <algorithm>
#include <functional>
#include <iterator>
#include <ranges>
#include <span>
#include <vector>

#include "metrics/metrics_sink.hpp"

namespace rtev {
namespace {

using Groups = std::vector<std::pair<std::string_view, const GroupFigures*>>;

constexpr std::uint64_t bytes_in_word = 8;

/// Programs may write any number into their rings.
constexpr std::int64_t shown(std::uint64_t amount, std::uint64_t factor = 1) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(amount, INT64_MAX / factor) * factor);
}

/// Writes families, each with the values of all groups.
class Writer {
 public:
  Writer(MetricVisitor& visitor, Groups groups) : visitor_(visitor), groups_(std::move(groups)) {}

  /// `of`: the value of a group.
  void gauge(std::string_view name, std::string_view help, std::int64_t GroupFigures::* of) {
    visitor_.family({.name = name, .unit = {}, .help = help, .type = MetricType::gauge});
    each([&](std::string_view group, const GroupFigures& figures) { value(group, figures.*of); });
  }
  void counter(std::string_view name, std::string_view unit, std::string_view help, std::uint64_t GroupFigures::* of,
               std::uint64_t factor = 1) {
    visitor_.family({.name = name, .unit = unit, .help = help, .type = MetricType::counter});
    each([&](std::string_view group, const GroupFigures& figures) { value(group, shown(figures.*of, factor)); });
  }
  /// A counter with a label whose values are those of `name_of`, by index.
  template <std::size_t size, typename NameOf>
  void counters(std::string_view name, std::string_view unit, std::string_view help, std::string_view label,
                std::array<std::uint64_t, size> GroupFigures::* of, const NameOf& name_of) {
    visitor_.family({.name = name, .unit = unit, .help = help, .type = MetricType::counter});
    each([&](std::string_view group, const GroupFigures& figures) {
      for (std::size_t i = 0; i < size; ++i) value(group, shown((figures.*of)[i]), {label, name_of(i)});
    });
  }
  void histogram(std::string_view name, std::string_view help, DurationHistogram GroupFigures::* of) {
    visitor_.family({.name = name, .unit = "seconds", .help = help, .type = MetricType::histogram});
    each([&](std::string_view group, const GroupFigures& figures) {
      const MetricLabel labels[]{{"group", group}};
      visitor_.histogram(labels, figures.*of);
    });
  }
  /// What programs named, if it is `wanted`.
  template <typename Value>
  void named(const std::vector<std::string>& wanted, const MetricFamily& family, std::string_view label,
             std::map<std::string, Value, std::less<>> UserFigures::* of) {
    if (wanted.empty()) return;
    visitor_.family(family);
    each([&](std::string_view group, const GroupFigures& figures) {
      for (const auto& [name, amount] : figures.user.*of) {
        const MetricLabel labels[]{{"group", group}, {label, name}};
        if constexpr (std::same_as<Value, DurationHistogram>) {
          visitor_.histogram(labels, amount);
        } else {
          visitor_.value(labels, static_cast<std::int64_t>(amount));
        }
      }
    });
  }
  template <typename Visit>
  void each(const Visit& visit) const {
    for (const auto& [group, figures] : groups_) visit(group, *figures);
  }
  void value(std::string_view group, std::int64_t amount) {
    const MetricLabel labels[]{{"group", group}};
    visitor_.value(labels, amount);
  }
  void value(std::string_view group, std::int64_t amount, const MetricLabel& label) {
    const MetricLabel labels[]{{"group", group}, label};
    visitor_.value(labels, amount);
  }
  MetricVisitor& visitor() { return visitor_; }

 private:
  MetricVisitor& visitor_;
  Groups groups_;
};

/// One without labels.
void single(MetricVisitor& visitor, const MetricFamily& family, std::uint64_t amount) {
  visitor.family(family);
  visitor.value({}, shown(amount));
}

template <typename Enum>
std::string_view name_of(std::size_t index) {
  return to_string(static_cast<Enum>(index));
}

/// What is unknown has no series: `read` has the groups of whose processes events were read, `scheduled` all if there
/// were scheduler events.
void add_processes(Writer& out, Writer& read) {
  out.gauge("ocaml_processes", "OCaml 5 processes that run.", &GroupFigures::processes);
  out.visitor().family({.name = "ocaml_processes_without_events",
                        .unit = {},
                        .help = "Of ocaml_processes those whose events are off, or whose ring is not read.",
                        .type = MetricType::gauge});
  out.each([&](std::string_view group, const GroupFigures& figures) {
    for (const auto& [events, reason] : {std::pair{EventsRead::off, "off"}, {EventsRead::unread, "unread"}})
      out.value(group, figures.processes_by_events[static_cast<std::size_t>(events)], {"reason", reason});
  });
  read.gauge("ocaml_domains", "Domains that run, of processes with events on.", &GroupFigures::domains);
  out.counter("ocaml_process_starts", "", "Programs executed.", &GroupFigures::starts);
  out.counter("ocaml_process_forks", "", "Processes that were forked by one, and run the same program at first.",
              &GroupFigures::forks);
  out.counters("ocaml_process_exits", "", "Processes that ended, or went on with another program (exec).", "reason",
               &GroupFigures::exits, name_of<ExitReason>);
  read.counter("ocaml_domain_spawns", "", "Domains that programs spawned.", &GroupFigures::domain_spawns);
}

void add_pauses(Writer& out, Writer& scheduled) {
  out.visitor().family({.name = "ocaml_gc_pause_duration",
                        .unit = "seconds",
                        .help = "Pauses of domains: outermost spans of the runtime, by what they were for.",
                        .type = MetricType::histogram});
  out.each([&](std::string_view group, const GroupFigures& figures) {
    for (std::size_t kind = 0; kind < pause_kind_count; ++kind) {
      const MetricLabel labels[]{{"group", group}, {"kind", name_of<PauseKind>(kind)}};
      out.visitor().histogram(labels, figures.pauses[kind]);
    }
  });
  out.counters("ocaml_gc_unfinished_pauses", "",
               "Pauses of unknown length, which are in no other figure: their end was lost, or the program ended.",
               "reason", &GroupFigures::unfinished, name_of<Unfinished>);
  out.counters("ocaml_gc_time", "seconds", "Time in phases of the runtime, without the phases inside.", "phase",
               &GroupFigures::phase_ns, name_of<PhaseFamily>);
  scheduled.counter("ocaml_gc_cpu", "seconds", "CPU time in pauses, also while waiting actively.",
                    &GroupFigures::gc_cpu_ns);
  out.visitor().family({.name = "ocaml_gc_wait",
                        .unit = "seconds",
                        .help = "Time that domains waited in pauses: for a CPU, blocked, or for other domains (stw).",
                        .type = MetricType::counter});
  scheduled.each([&](std::string_view group, const GroupFigures& figures) {
    out.value(group, shown(figures.wait_runnable_ns), {"reason", "runnable"});
    out.value(group, shown(figures.wait_blocked_ns), {"reason", "blocked"});
  });
  out.each([&](std::string_view group, const GroupFigures& figures) {
    out.value(group, shown(figures.wait_stw_ns), {"reason", "stw"});
  });
  out.histogram("ocaml_stw_duration", "Stop-the-world sections, as their leaders saw them.", &GroupFigures::stw);
  out.histogram("ocaml_stw_arrival", "From a request to stop the world until the last domain had stopped.",
                &GroupFigures::stw_arrival);
}

void add_collections(Writer& out) {
  out.counter("ocaml_gc_minor_collections", "", "Minor collections of processes.", &GroupFigures::minor_collections);
  out.counter("ocaml_gc_major_cycles", "", "Cycles of the major collector.", &GroupFigures::major_cycles);
  out.counter("ocaml_gc_major_slices", "", "Slices of the major collector, of all domains.",
              &GroupFigures::major_slices);
  out.counter("ocaml_gc_compactions", "", "Compactions of heaps.", &GroupFigures::compactions);
  out.counters("ocaml_gc_forced", "", "Collections that were forced or requested, by cause.", "cause",
               &GroupFigures::forced, [](std::size_t i) { return trigger_counters()[i]; });
  out.counters("ocaml_gc_explicit", "", "Calls of functions of Gc by programs.", "function",
               &GroupFigures::explicit_calls, [](std::size_t i) {
                 constexpr std::string_view prefix = "explicit_gc_";
                 return explicit_phases()[i].substr(prefix.size());
               });
}

void add_heap(Writer& out) {
  out.counter("ocaml_gc_minor_allocated", "bytes", "Allocated in minor heaps, as minor collections report it.",
              &GroupFigures::minor_bytes);
  out.counter("ocaml_gc_promoted", "bytes", "Moved from minor heaps to the major heap.", &GroupFigures::promoted_bytes);
  out.counter("ocaml_gc_major_allocated", "bytes",
              "Allocated in the major heap, as slices report it (OCaml 5.3 and later).", &GroupFigures::major_words,
              bytes_in_word);
  // Entries of heap_counters().
  enum Entry : std::size_t { words, pool, pool_live, large, pool_frag, pool_blocks, large_blocks };
  const auto heap = [&](std::string_view name, std::string_view unit, std::string_view help,
                        std::initializer_list<std::pair<Entry, std::string_view>> spaces) {
    out.visitor().family({.name = name, .unit = unit, .help = help, .type = MetricType::gauge});
    out.each([&](std::string_view group, const GroupFigures& figures) {
      for (const auto& [entry, space] : spaces) {
        if (!figures.heap_seen[entry]) continue;
        out.value(group, shown(figures.heap[entry], unit == "bytes" ? bytes_in_word : 1), {"space", space});
      }
    });
  };
  heap("ocaml_heap_size", "bytes", "Major heaps at the end of their last cycle.", {{pool, "pool"}, {large, "large"}});
  heap("ocaml_heap_live", "bytes", "Of them, in blocks that were reachable.", {{pool_live, "pool"}, {large, "large"}});
  heap("ocaml_heap_fragmentation", "bytes", "Of them, lost at the ends of pools.", {{pool_frag, "pool"}});
  heap("ocaml_heap_blocks", "", "Blocks in major heaps at the end of their last cycle.",
       {{pool_blocks, "pool"}, {large_blocks, "large"}});
}

void add_threads(Writer& out, Writer& read) {
  out.histogram("ocaml_sched_delay", "Time from being able to run until having a CPU, of threads of OCaml programs.",
                &GroupFigures::sched_delay);
  out.counters("ocaml_thread_cpu", "seconds", "CPU time of threads.", "role", &GroupFigures::shown_cpu_ns,
               name_of<ThreadRole>);
  read.counter("ocaml_condition_wait", "seconds", "Time that domains waited for conditions of the program.",
               &GroupFigures::condition_wait_ns);
}

void add_tasks(Writer& out) {
  out.visitor().family({.name = "ocaml_tasks",
                        .unit = "",
                        .help = "Fibers and other tasks that have not ended, by library and state.",
                        .type = MetricType::gauge});
  out.each([&](std::string_view group, const GroupFigures& figures) {
    for (std::size_t library = 0; library < task_library_count; ++library) {
      if (!figures.tasks_seen.at(library)) continue;
      for (std::size_t state = 0; state < task_state_count; ++state) {
        const MetricLabel labels[]{
            {"group", group}, {"lib", name_of<TaskLibrary>(library)}, {"state", name_of<TaskState>(state)}};
        out.visitor().value(labels, shown(figures.tasks.at(library).at(state)));
      }
    }
  });
}

void add_user(Writer& out, const UserMetricOptions& wanted) {
  out.named(wanted.events,
            {.name = "ocaml_user_events", .unit = "", .help = "Events of programs.", .type = MetricType::counter},
            "event", &UserFigures::events);
  out.named(wanted.spans,
            {.name = "ocaml_user_span_duration",
             .unit = "seconds",
             .help = "Spans of programs.",
             .type = MetricType::histogram},
            "span", &UserFigures::spans);
  out.named(wanted.values,
            {.name = "ocaml_user_value", .unit = "", .help = "Last value of an event.", .type = MetricType::gauge},
            "name", &UserFigures::values);
}

}  // namespace

/// Sums up what the processes of groups have now.
void MetricsSink::update_tasks() {
  groups_.each([](std::string_view, Group& group) { group.figures.tasks = {}; });
  other_.figures.tasks = {};
  for (const auto& [index, process] : processes_) {
    if (process.group == nullptr) continue;
    const TaskTracker::Counts counts = analyzer_.tasks().counts(index);
    for (std::size_t library = 0; library < counts.size(); ++library) {
      for (std::size_t state = 0; state < task_state_count; ++state) {
        process.group->figures.tasks.at(library).at(state) += counts.at(library).at(state);
        if (counts.at(library).at(state) > 0) process.group->figures.tasks_seen.at(library) = true;
      }
    }
  }
}

void MetricsSink::visit(MetricVisitor& visitor) {
  update_cpu();
  update_tasks();
  Groups groups;
  groups_.each([&](std::string_view name, const Group& group) { groups.emplace_back(name, &group.figures); });
  if (folded_ > 0) groups.emplace_back("other", &other_.figures);

  const bool is_scheduled = has_usage_ || analyzer_.scheduler_seen();
  Groups with_events;
  std::ranges::copy_if(groups, std::back_inserter(with_events),
                       [](const auto& group) { return group.second->has_events; });
  Writer of_scheduler(visitor, is_scheduled ? groups : Groups{});
  Writer of_pauses(visitor, is_scheduled ? with_events : Groups{});
  Writer out(visitor, std::move(groups)), read(visitor, std::move(with_events));
  add_processes(out, read);
  add_pauses(read, of_pauses);
  add_collections(read);
  add_heap(read);
  add_threads(of_scheduler, read);
  add_tasks(read);
  add_user(read, options_.user);
  read.counters("ocaml_ring_lost_words", "", "Words of rings that were not delivered.", "reason",
                &GroupFigures::lost_words, name_of<LossReason>);
  read.counter("ocaml_probe_gaps", "", "Times that probes of programs without a ring were off.",
               &GroupFigures::probe_gaps);

  visitor.family(
      {.name = "rtev_bpf_build_info", .unit = "", .help = "The version of rtev-bpf.", .type = MetricType::gauge});
  const MetricLabel version[]{{"version", header_.version}};
  visitor.value(version, 1);
  visitor.family(
      {.name = "rtev_bpf_events", .unit = "", .help = "Events of the stream, by kind.", .type = MetricType::counter});
  for (std::size_t kind = 0; kind < event_kind_count; ++kind) {
    const MetricLabel label[]{{"kind", name_of<EventKind>(kind)}};
    visitor.value(label, shown(events_[kind]));
  }
  visitor.family({.name = "rtev_bpf_kernel_lost",
                  .unit = "",
                  .help = "Records that did not fit into a buffer of the kernel.",
                  .type = MetricType::counter});
  const MetricLabel sched[]{{"source", "scheduler"}}, samples[]{{"source", "stacks"}};
  visitor.value(sched, shown(sched_dropped_));
  visitor.value(samples, shown(samples_dropped_));
  single(visitor, {.name = "rtev_bpf_groups", .unit = "", .help = "Groups of processes.", .type = MetricType::gauge},
         groups_.size() + (folded_ > 0 ? 1 : 0));
  single(visitor,
         {.name = "rtev_bpf_groups_folded",
          .unit = "",
          .help = "Processes counted in the group \"other\", as there are too many groups."},
         folded_);
  single(visitor, {.name = "rtev_bpf_groups_forgotten", .unit = "", .help = "Groups removed to make room for others."},
         groups_.removed());
  if (options_.pause_span_ns != 0)
    single(visitor,
           {.name = "rtev_bpf_pause_spans_dropped",
            .unit = "",
            .help = "Long pauses that were not sent as spans, to limit their number."},
           spans_.left_out());
  groups_.forget_removed();
}

}  // namespace rtev
