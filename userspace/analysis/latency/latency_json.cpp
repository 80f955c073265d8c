// SPDX-License-Identifier: MIT
#include <array>
#include <optional>

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

void add_figures(JsonWriter& out, const LatencyFigures& figures) {
  add_distribution(out, figures.wall);
  add_split(out, "time_ns", figures.split);
  out.key("on_cpu").object([&] { add_distribution(out, figures.on_cpu); });
  out.key("runnable").object([&] { add_distribution(out, figures.runnable); });
  out.key("blocked").object([&] { add_distribution(out, figures.blocked); });
  out.member("below_min", figures.below_min);
  add_unfinished(out, figures.unfinished);
  out.member("lost_words", figures.lost_words);
  out.member("unprobed", figures.unprobed);
  out.member("lower_bound", figures.lower_bound());
}

void add_process(JsonWriter& out, const LatencyReport::Process& process) {
  out.member("pid", process.pid);
  out.member("comm", std::string_view{process.comm});
  out.member("exe", std::string_view{process.exe});
  out.member("ended", process.ended);
  add_figures(out, process.figures);
  out.key("domains").array([&] {
    for (const LatencyReport::Domain& domain : process.domains) {
      out.object([&] {
        out.member("domain", domain.domain);
        out.member("incarnations", domain.incarnations);
        add_figures(out, domain.figures);
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
    out.member("scheduler_dropped", report.scheduler_dropped);
    out.member("rings_missed", report.rings_missed);
    out.member("ignored_events", report.ignored_events);
    out.member("words_before", report.words_before);
    out.member("lower_bound", report.lower_bound());
    add_utilization(out, report.utilization);
    out.key("all").object([&] { add_figures(out, report.all); });
    out.key("processes").array([&] {
      for (const LatencyReport::Process& process : report.processes) {
        out.object([&] { add_process(out, process); });
      }
    });
    out.key("others").object([&] {
      out.member("domains", report.other_domains);
      add_figures(out, report.others);
    });
  });
  return std::string{out.text()} + '\n';
}

}  // namespace rtev
