// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "analysis/diff/diff_report.hpp"
#include "analysis/report_json.hpp"
#include "base/enum_names.hpp"

namespace rtev {
namespace {

void add_run(JsonWriter& json, std::string_view key, const DiffRun& run) {
  json.key(key).object([&] {
    json.text_or_null("file", run.file);
    json.text_or_null("host", run.host);
    json.text_or_null("kernel", run.kernel);
    add_span(json, run);
    json.member("truncated", run.truncated);
    add_not_recorded(json, run.not_recorded);
    json.member("scheduler_seen", run.scheduler_seen);
    add_sched_dropped(json, "scheduler_dropped", run.scheduler_dropped, run.scheduler_seen, run.truncated);
    json.member("samples_dropped", known_count(run.samples_dropped, run.truncated));
    json.member("rings_missed", known_count(run.rings_missed, run.truncated));
    json.member("processes_left_out", run.processes_left_out);
  });
}

void add_side(JsonWriter& json, std::string_view key, const std::string& name, const DiffSide& side,
              const DiffRun& run) {
  json.key(key).object([&] {
    json.member("name", std::string_view{name});
    json.member("processes", side.processes);
    json.member("running_ns", known_count(side.running_ns, run.not_recorded.has(EventKind::process)));
    json.member("slices", side.slices);
    json.member("lost_words", side.lost.known(run.truncated));
    json.member("lossy_share", run.truncated ? std::nullopt : std::optional(side.lossy_share));
    json.member("longest_pause_ns", known_count(side.longest_pause_ns, run.not_recorded.has_phases()));
  });
}

void add_figure(JsonWriter& json, const DiffFigure& figure) {
  json.object([&] {
    json.member("id", std::string_view{figure.id});
    json.member("name", std::string_view{figure.name});
    json.member("role", to_string(figure.role));
    json.member("unit", to_string(figure.unit));
    json.member("a", figure.a);
    json.member("b", figure.b);
    json.member("ratio", figure.ratio());
    // Numbers have six decimals, and nothing is impossible.
    json.member("p", figure.p.transform([](double p) { return std::max(p, 1e-6); }));
    json.member("verdict", to_string(figure.verdict));
  });
}

void add_program(JsonWriter& json, const DiffProgram& program, const DiffReport& report) {
  json.object([&] {
    json.member("verdict", program.verdict());
    json.text_or_null("why_not", program.why_not);
    add_side(json, "a", program.name_a, program.a, report.a);
    add_side(json, "b", program.name_b, program.b, report.b);
    json.member("slice_ns", program.slice_ns);
    json.member("lacks_room", program.lacks_room);
    json.member("has_other_load", program.has_other_load);
    json.key("settings").array([&] {
      for (const DiffSetting& setting : program.settings) {
        json.object([&] {
          json.member("id", std::string_view{setting.id});
          json.member("a", std::string_view{setting.a});
          json.member("b", std::string_view{setting.b});
        });
      }
    });
    json.key("figures").array([&] {
      for (const DiffFigure& figure : program.figures) add_figure(json, figure);
    });
  });
}

}  // namespace

std::string_view to_string(DiffRole role) {
  static constexpr std::string_view names[]{"symptom", "cause", "detail"};
  return name_at(names, role);
}

std::string_view to_string(DiffUnit unit) {
  static constexpr std::string_view names[]{"ns", "share", "per_second", "bytes", "bytes_per_second", "number"};
  return name_at(names, unit);
}

std::string_view to_string(DiffVerdict verdict) {
  static constexpr std::string_view names[]{"same", "better", "worse", "more", "less", "too_few", "small"};
  return name_at(names, verdict);
}

std::string diff_json(const DiffReport& report) {
  JsonWriter json;
  json.object([&] {
    add_type(json, "diff", report.version);
    json.member("min_change", report.min_change);
    add_run(json, "a", report.a);
    add_run(json, "b", report.b);
    json.text_or_null("regression", report.regression());
    json.key("programs").array([&] {
      for (const DiffProgram& program : report.programs) add_program(json, program, report);
    });
    json.values("only_a", report.only_a);
    json.values("only_b", report.only_b);
    json.values("off_in_a", report.off_in_a);
    json.values("off_in_b", report.off_in_b);
  });
  return std::string{json.text()} + '\n';
}

}  // namespace rtev
