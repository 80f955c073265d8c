// SPDX-License-Identifier: MIT
// The data of the HTML report: the JSON reports as other subcommands write them, and what is drawn
// besides.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/latency/distribution_json.hpp"
#include "analysis/profile/profile_words.hpp"
#include "analysis/report_json.hpp"
#include "analysis/report_text.hpp"
#include "formats/profile/profile_files.hpp"
#include "formats/report/html_report.hpp"
#include "formats/report/timeline_json.hpp"
#include "formats/run_json.hpp"

namespace rtev {
namespace {

/// What a report has of things that a hostile or very large run has without limit. The report says how many there are.
constexpr std::size_t max_report_processes = 40, max_report_domains = 64, max_report_spans = 60, max_report_slowest = 3,
                      max_report_stalls = 10, max_report_loops = 20, max_report_nodes = 20'000,
                      max_report_arrivals = 32;

template <typename Elements>
void cut(Elements& elements, std::size_t most) {
  if (elements.size() > most) elements.resize(most);
}

/// Their JSON ends with a newline.
std::string_view without_newline(std::string_view json) {
  return json.substr(0, json.find_last_not_of('\n') + 1);
}

class ReportData {
 public:
  explicit ReportData(HtmlReport& report) : report_(report) {}

  std::string text() {
    processes_ = report_.stats.processes.size();
    bound();
    json_.object([&] {
      add_type(json_, "report", report_.header.version);
      add_span(json_, report_.pauses);
      json_.member("input", std::string_view(report_.pauses.input));
      json_.member("processes", processes_);
      json_.key("run").object([&] { add_run(json_, report_.header); });
      json_.key("counts").object([&] { add_counts(json_, report_.run); });
      reports();
      json_.key("causes").array([&] {
        for (const CauseGroup& group : report_.pauses.long_pauses.groups) {
          TextBuffer name;
          append(name, CauseName{group, report_.pauses.counts.switches_seen()});
          json_.value(name.text());
        }
      });
      phases();
      series();
      arrivals();
      timelines();
      json_.key("profiles").array([&] {
        for (const ProfileReport& profile : report_.profiles) json_.raw(flame_graph_json(profile, max_report_nodes));
      });
    });
    return std::string(json_.text());
  }

 private:
  void bound() {
    cut(report_.stats.processes, max_report_processes);
    for (ProcessStats& process : report_.stats.processes) cut(process.domains, max_report_domains);
    cut(report_.latency.processes, max_report_processes);
    for (LatencyReport::Process& process : report_.latency.processes) cut(process.domains, max_report_domains);
    cut(report_.spans.groups, max_report_spans);
    for (SpanGroup& group : report_.spans.groups) cut(group.slowest, max_report_slowest);
    stalls_ = *report_.stalls;
    cut(stalls_.programs, max_report_loops);
    for (LoopProgram& program : stalls_.programs) cut(program.stalls, max_report_stalls);
    tasks_ = *report_.tasks;
    cut(tasks_.programs, max_report_loops);
    for (TaskProgram& program : tasks_.programs) {
      cut(program.longest, max_report_stalls);
      cut(program.operations, max_report_loops);
    }
  }

  /// The same as of the subcommands, but for what bound() left out.
  void reports() {
    json_.key("stats").raw(without_newline(stats_json(report_.stats)));
    json_.key("latency").raw(without_newline(latency_json(report_.latency)));
    json_.key("pauses").raw(without_newline(report_json(report_.pauses)));
    json_.key("spans").raw(without_newline(spans_json(report_.spans)));
    json_.key("stalls").raw(without_newline(stalls_json(stalls_)));
    json_.key("tasks").raw(without_newline(tasks_json(tasks_)));
  }

  void phases() {
    json_.key("phases").array([&] {
      for (const auto& [key, total] : report_.timelines->phase_totals()) {
        json_.object([&] {
          json_.member("name", phase_name(key.first, key.second));
          json_.member("family", to_string(key.first));
          json_.member("count", total.count);
          json_.member("total_ns", total.total_ns);
          json_.member("own_ns", total.own_ns);
          json_.member("longest_ns", total.longest_ns);
        });
      }
    });
  }

  void column(std::string_view name, std::uint64_t ReportColumn::* figure) {
    json_.key(name).array([&] {
      for (const ReportColumn& column : report_.series->columns().columns()) json_.value(column.*figure);
    });
  }

  void series() {
    const TimeColumns<ReportColumn>& columns = report_.series->columns();
    json_.key("series").object([&] {
      json_.member("begin_ns", columns.start_ns());
      json_.member("width_ns", columns.width_ns());
      json_.member("columns", columns.columns().size());
      // Three numbers each: column, length, count.
      json_.key("pauses").array([&] {
        for (std::size_t x = 0; x < columns.columns().size(); ++x) {
          for (std::size_t y = 0; y < ReportColumn::length_count; ++y) {
            const std::uint32_t count = columns.columns()[x].pauses[y];
            if (count == 0) continue;
            json_.value(x);
            json_.value(y);
            json_.value(count);
          }
        }
      });
      column("longest_ns", &ReportColumn::longest_ns);
      column("paused_ns", &ReportColumn::paused_ns);
      column("sections", &ReportColumn::sections);
      column("longest_arrival_ns", &ReportColumn::longest_arrival_ns);
      column("minor_bytes", &ReportColumn::minor_bytes);
      column("promoted_bytes", &ReportColumn::promoted_bytes);
      column("explicit_calls", &ReportColumn::explicit_calls);
      column("events", &ReportColumn::events);
      json_.key("lost_words").array([&] {
        for (const ReportColumn& column : columns.columns())
          json_.value(known_count(column.lost_words, column.gaps > 0));
      });
    });
  }

  void arrivals() {
    json_.key("arrivals").object([&] {
      add_distribution(json_, report_.series->arrivals());
      json_.key("last").array([&] {
        auto last = report_.series->last_arrivals();
        cut(last, max_report_arrivals);
        for (const LastArrival& domain : last) {
          json_.object([&] {
            json_.member("pid", domain.pid);
            json_.member("comm", std::string_view(domain.comm));
            json_.member("domain", domain.domain);
            json_.member("sections", domain.sections);
            json_.member("total_ns", domain.total_ns);
            json_.member("longest_ns", domain.longest_ns);
          });
        }
      });
    });
  }

  /// Those of the worst pauses, each once, and which one a pause has.
  void timelines() {
    std::vector<const PauseTimeline*> shown;
    json_.key("timeline_of").array([&] {
      for (const PauseDetails* const pause : report_.pauses.worst) {
        const PauseTimeline* const timeline = report_.timelines->find(pause->domain.process, pause->begin_ns);
        if (timeline == nullptr) {
          json_.value(nullptr);
          continue;
        }
        auto at = std::ranges::find(shown, timeline);
        if (at == shown.end()) at = shown.insert(shown.end(), timeline);
        json_.value(at - shown.begin());
      }
    });
    json_.key("timelines").array([&] {
      for (const PauseTimeline* const timeline : shown) add_timeline(json_, *timeline, *report_.stacks);
    });
  }

  HtmlReport& report_;
  StallsReport stalls_{};
  TasksReport tasks_{};
  std::size_t processes_ = 0;
  JsonWriter json_;
};

}  // namespace

std::string html_report_json(HtmlReport& report) {
  return ReportData(report).text();
}

}  // namespace rtev
