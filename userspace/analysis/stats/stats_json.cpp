// SPDX-License-Identifier: MIT
#include "analysis/latency/distribution_json.hpp"
#include "analysis/report_json.hpp"
#include "analysis/stats/gc_tuning.hpp"
#include "analysis/stats/stats_report.hpp"
#include "analysis/utilization/utilization_report.hpp"
#include "stream/registry.hpp"

namespace rtev {
namespace {

/// The members of an object with these names, those without the prefix.
template <std::size_t count>
void add_counts(JsonWriter& json, std::string_view name, const std::array<std::uint64_t, count>& figures,
                std::span<const std::string_view> names, std::string_view prefix, bool is_unknown) {
  json.key(name).object([&] {
    for (std::size_t i = 0; i < count; ++i) {
      std::string_view member = names[i];
      if (member.starts_with(prefix)) member.remove_prefix(prefix.size());
      json.member(member, known_count(figures[i], is_unknown));
    }
  });
}

void add_missing(JsonWriter& json, const Missing& missing, bool truncated) {
  json.member("lower_bound", known_flag(missing.any() || missing.left_out(), truncated || missing.all_off()));
  json.key("because").array([&] {
    if (missing.lost) json.value("lost");
    if (missing.unprobed) json.value("unprobed");
    if (missing.paused) json.value("paused");
    if (missing.unfinished) json.value("unfinished");
    if (missing.before) json.value("before");
    if (missing.merged) json.value("merged");
    if (missing.unread) json.value("not_read");
    if (missing.ignored) json.value("ignored");
    if (missing.left_out()) json.value("not_recorded");
    if (missing.all_off()) json.value("off");
  });
}

void write_heap(JsonWriter& json, const StatsFigures& figures) {
  json.key("heap").object([&] {
    for (std::size_t i = 0; i < heap_counter_count; ++i) {
      if (!figures.heap[i]) continue;
      json.key(heap_counters()[i]).object([&] {
        json.member("last", figures.heap[i]->last);
        json.member("max", figures.heap[i]->max);
      });
    }
  });
}

/// Null where the runtime does not report it.
void add_trend(JsonWriter& json, std::string_view name, const Trend& trend) {
  if (trend.count() == 0) return json.member(name, std::optional<int>{});
  json.key(name).object([&] {
    json.member("first", trend.first());
    json.member("last", trend.last());
    json.member("span_ns", trend.span_ns());
    json.member("rises_all_the_time", known_flag(trend.rises_all_the_time(), trend.is_short()));
    json.key("samples").array([&] {
      for (const Trend::Sample& sample : trend.samples()) {
        json.object([&] {
          json.member("ts", sample.time_ns);
          json.member("words", sample.value);
        });
      }
    });
  });
}

/// The members that domains, processes and sums have in common.
void write_figures(JsonWriter& json, const StatsFigures& figures, bool truncated) {
  json.member("wall_ns", figures.wall());
  json.member("domain_ns", figures.domain_time());
  json.member("cpu_ns", figures.cpu_ns);
  json.member("gc_ns", figures.of_phases(figures.gc_ns));
  json.member("gc_share", figures.gc_share());
  json.member("gc_cpu_ns", figures.known_gc_cpu());
  json.member("gc_sample_share", figures.gc_sample_share());
  json.member("stw_led", figures.of_phases(figures.stw_led));
  json.member("stw_followed", figures.of_phases(figures.stw_followed));
  json.key("collections").object([&] {
    json.member("minor", figures.known_minor_collections());
    json.member("major_slices", figures.of_phases(figures.major_slices));
    json.member("major_cycles", figures.of_phases(figures.major_cycles));
    json.member("compactions", figures.of_phases(figures.compactions));
  });
  add_counts(json, "explicit", figures.explicit_calls, explicit_phases(), "explicit_gc_", !figures.of_phases(0));
  add_counts(json, "triggers", figures.triggers, trigger_counters(), "", !figures.of_counters(0));
  json.key("words").object([&] {
    json.member("minor", figures.known_minor_words());
    json.member("minor_lower_bound", known_flag(figures.minor_words_bound(), !figures.known_minor_words()));
    json.member("promoted", figures.of_counters(figures.promoted_words));
    json.member("major", figures.major_words);
    json.member("major_lower_bound", known_flag(figures.major_words_lower_bound(), !figures.major_words));
  });
  write_heap(json, figures);
  json.member("user_events", figures.known_user_events());
  json.member("events", figures.known_events());
  json.member("losses", figures.of_losses(figures.losses, truncated));
  json.member("lost_words", figures.known_lost_words(truncated));
  add_missing(json, figures.missing, truncated);
}

void add_domain(JsonWriter& json, const DomainStats& domain, bool truncated) {
  json.object([&] {
    json.member("domain", domain.domain);
    json.member("incarnation", domain.incarnation);
    json.member("ended", domain.ended);
    json.member("begin_ns", domain.begin_ns);
    write_figures(json, domain.figures, truncated);
  });
}

/// Sums, and over how many they are.
void add_sum(JsonWriter& json, std::string_view name, std::string_view what, std::optional<std::uint64_t> count,
             const StatsFigures& figures, bool truncated) {
  json.key(name).object([&] {
    json.member(what, count);
    write_figures(json, figures, truncated);
  });
}

void write_user_events(JsonWriter& json, const ProcessStats& process) {
  json.key("user_event_counts").array([&] {
    for (const UserEventStats& user : process.user_events) {
      json.object([&] {
        json.text_or_null("name", user.name);
        json.member("id", user.id);
        json.member("count", user.count);
        if (user.durations.count() > 0) json.key("spans").object([&] { add_distribution(json, user.durations); });
      });
    }
  });
  json.member("other_user_events", known_count(process.other_user_events, !process.figures.known_user_events()));
}

void write_buckets(JsonWriter& json, const ProcessStats& process) {
  if (!process.alloc_buckets) {
    json.member("alloc_buckets", std::optional<int>{});
    return;
  }
  json.key("alloc_buckets").array([&] {
    for (const std::uint64_t count : *process.alloc_buckets) json.value(count);
  });
}

void write_process(JsonWriter& json, const ProcessStats& process, bool gc_tuning, bool truncated) {
  json.object([&] {
    json.member("pid", process.pid);
    json.member("comm", process.comm);
    json.member("exe", process.exe);
    json.member("runtime", process.runtime);
    json.text_or_null("version", process.version);
    json.member("family", rtev::to_string(process.family));
    json.member("ended", process.ended);
    json.member("begin_ns", process.begin_ns);
    json.member("cpu_since_ns", process.figures.cpu_ns ? process.cpu_since_ns : std::nullopt);
    json.member("max_rss_bytes", process.max_rss_bytes);
    write_figures(json, process.figures, truncated);
    add_trend(json, "heap_words", process.heap_words);
    add_trend(json, "live_words", process.live_words);
    json.key("cycles").object([&] {
      const MajorCycles& cycles = process.cycles;
      json.member("last_ns", cycles.count > 0 ? std::optional(cycles.last_ns) : std::nullopt);
      json.member("since_last_ns", process.since_cycle_ns());
      json.member("longest_gap_ns", cycles.count > 1 ? std::optional(cycles.longest_gap_ns) : std::nullopt);
      json.member("have_stopped", process.cycles_stopped());
    });
    if (gc_tuning) add_gc_tuning(json, process);
    write_user_events(json, process);
    write_buckets(json, process);
    json.key("domains").array([&] {
      for (const DomainStats& domain : process.domains) add_domain(json, domain, truncated);
    });
    const auto others = known_count(process.other_domain_count, process.figures.missing.all_off());
    add_sum(json, "other_domains", "domains", others, process.other_domains, truncated);
  });
}

void write_program(JsonWriter& json, const ProgramStats& program, bool truncated) {
  json.object([&] {
    json.text_or_null("comm", program.key.empty() ? std::string_view() : program.comm);
    json.text_or_null("exe", program.key.empty() ? std::string_view() : program.exe);
    json.member("processes", program.processes);
    json.member("domains", known_count(program.domains, program.figures.missing.all_off()));
    json.member("heaps_rising", known_count(program.rising, program.watched == 0));
    json.member("max_heap_words", program.max_heap_words);
    json.member("max_rss_bytes", program.max_rss_bytes);
    write_figures(json, program.figures, truncated);
  });
}

}  // namespace

std::string stats_json(const StatsReport& report, bool gc_tuning) {
  JsonWriter json;
  json.object([&] {
    add_head(json, "stats", report);
    json.member("scheduler_seen", report.scheduler_seen);
    add_sched_dropped(json, "switches_dropped", report.switches_dropped, report.scheduler_seen, report.truncated);
    json.member("scheduler_contradictions", known_count(report.scheduler_gaps(), !report.scheduler_seen));
    json.member("rings_missed", known_count(report.rings_missed, report.truncated));
    json.member("ignored_events", report.ignored_events);
    add_utilization(json, report.utilization, !report.total.of_phases(0));
    json.key("allocators").array([&] {
      for (const Allocator& allocator : report.allocators) {
        json.object([&] {
          json.member("place", std::string_view{allocator.place});
          json.member("weight", allocator.weight);
          json.member("of", allocator.all);
        });
      }
    });
    json.key("processes").array([&] {
      for (const ProcessStats& process : report.processes) write_process(json, process, gc_tuning, report.truncated);
    });
    add_sum(json, "other_processes", "processes", report.other_process_count, report.other_processes, report.truncated);
    json.key("programs").array([&] {
      for (const ProgramStats& program : report.programs) write_program(json, program, report.truncated);
    });
    add_sum(json, "total", "processes", report.known_process_count(), report.total, report.truncated);
  });
  return std::string{json.text()} + '\n';
}

}  // namespace rtev
