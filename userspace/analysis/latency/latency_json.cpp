// SPDX-License-Identifier: MIT
#include <array>
#include <optional>
#include <utility>

#include "analysis/latency/distribution_json.hpp"
#include "analysis/latency/latency_figures.hpp"
#include "analysis/report_json.hpp"
#include "analysis/utilization/utilization_report.hpp"
#include "base/enum_names.hpp"

namespace rtev {
namespace {

std::string_view name_of(LatencyReport::Span span) {
  static constexpr std::string_view names[]{"interval", "so_far", "run"};
  return name_at(names, span);
}

void add_figures(JsonWriter& out, const LatencyFigures& figures, bool truncated, bool lacks_rings = false) {
  add_distribution(out, figures.wall);
  add_split(out, "time_ns", figures.split);
  // Of those of which all is known.
  const bool is_unknown = figures.on_cpu.count() == 0 && figures.wall.count() > 0;
  for (const auto& [key, values] : {std::pair<std::string_view, const Histogram&>{"on_cpu", figures.on_cpu},
                                    {"runnable", figures.runnable},
                                    {"blocked", figures.blocked}}) {
    if (is_unknown) {
      out.member(key, std::optional<int>{});
    } else {
      out.key(key).object([&] { add_distribution(out, values); });
    }
  }
  out.member("below_min", figures.below_min);
  add_unfinished(out, figures.unfinished);
  out.member("lost_words", known_count(figures.lost_words, truncated || figures.unprobed > 0));
  out.member("unprobed", known_count(figures.unprobed, truncated));
  out.member("lower_bound", known_flag(figures.lower_bound() || lacks_rings, truncated));
}

void add_process(JsonWriter& out, const LatencyReport::Process& process, bool truncated) {
  out.member("pid", process.pid);
  out.member("comm", std::string_view{process.comm});
  out.member("exe", std::string_view{process.exe});
  out.member("ended", process.ended);
  add_figures(out, process.figures, truncated, process.lacks_rings);
  out.key("domains").array([&] {
    for (const LatencyReport::Domain& domain : process.domains) {
      out.object([&] {
        out.member("domain", domain.domain);
        out.member("incarnations", domain.incarnations);
        add_figures(out, domain.figures, truncated, process.lacks_rings);
      });
    }
  });
}

}  // namespace

std::string latency_json(const LatencyReport& report) {
  JsonWriter out;
  out.object([&] {
    add_head(out, "latency", report);
    if (report.span == LatencyReport::Span::run) add_own_share(out, report.own);
    out.member("report", name_of(report.span));
    out.text_or_null("phase", report.phase);
    out.member("rule", std::string_view{report.rule == PauseRule::olly ? "olly" : "outermost"});
    out.member("min_ns", report.min_ns);
    out.member("scheduler_seen", report.scheduler_seen);
    // The end of a run says what could not be read.
    const bool has_no_end = report.truncated || report.span != LatencyReport::Span::run;
    add_sched_dropped(out, "scheduler_dropped", report.scheduler_dropped, report.scheduler_seen, report.truncated);
    out.member("rings_missed", known_count(report.rings_missed, has_no_end));
    out.member("ignored_events", report.ignored_events);
    out.member("words_before", known_count(report.words_before, has_no_end));
    out.member("lower_bound", known_flag(report.lower_bound(), report.truncated || report.is_unknown()));
    add_utilization(out, report.utilization, report.is_unknown());
    if (report.is_unknown()) {
      for (const std::string_view part : {"all", "processes", "others"}) out.member(part, std::optional<int>{});
      return;
    }
    out.key("all").object([&] { add_figures(out, report.all, report.truncated); });
    out.key("processes").array([&] {
      for (const LatencyReport::Process& process : report.processes) {
        out.object([&] { add_process(out, process, report.truncated); });
      }
    });
    out.key("others").object([&] {
      out.member("domains", report.other_domains);
      add_figures(out, report.others, report.truncated);
    });
  });
  return std::string{out.text()} + '\n';
}

}  // namespace rtev
