// SPDX-License-Identifier: MIT
#include "analysis/spans/spans_json.hpp"

#include "analysis/latency/distribution_json.hpp"
#include "analysis/report_json.hpp"
#include "analysis/seen_stacks_json.hpp"
#include "analysis/spans/spans_report.hpp"

namespace rtev {

void add_time(JsonWriter& json, const SpanTime& time, bool knows_pauses) {
  const bool is_unknown = time.is_unknown();
  json.key("time_ns").object([&] {
    json.member("code", known_count(time.code, is_unknown));
    json.member("gc", known_count(time.gc, is_unknown || !knows_pauses));
    json.member("domains", known_count(time.domains, is_unknown || !knows_pauses));
    json.member("no_cpu", known_count(time.no_cpu, is_unknown));
    json.member("blocked", known_count(time.blocked, is_unknown));
    json.member("unknown", time.unknown);
  });
}

namespace {

void add_group(JsonWriter& json, const SpanGroup& group, const SpansReport& report) {
  const bool knows_pauses = !report.not_recorded.lacks_pauses();
  const StackTable* const stacks = report.stacks;
  json.member("pid", group.pid);
  json.member("comm", group.comm);
  json.member("name", group.name);
  add_distribution(json, group.wall);
  json.member("below_min", group.below_min);
  json.member("unfinished", group.unfinished);
  add_time(json, group.time, knows_pauses);
  json.key("slowest").array([&] {
    for (const Span& span : group.slowest) {
      json.object([&] {
        json.member("domain", span.domain);
        json.member("begin_ns", span.begin_ns);
        json.member("duration_ns", span.length_ns());
        add_time(json, span.time, knows_pauses);
        json.member("pauses", known_count(span.pauses, !knows_pauses));
        json.member("longest_pause_ns", known_count(span.longest_pause_ns, !knows_pauses));
        if (stacks && !span.stacks.empty()) add_seen_stacks(json.key("stacks"), span.stacks, *stacks);
      });
    }
  });
}

}  // namespace

std::string spans_json(const SpansReport& report) {
  JsonWriter json;
  json.object([&] {
    add_head(json, "spans", report);
    json.member("pattern", report.pattern);
    json.member("min_ns", report.min_ns);
    json.member("scheduler_seen", report.scheduler_seen);
    json.member("lost_words", report.lost.known(report.truncated || report.is_unknown()));
    json.member("ungrouped", report.ungrouped);
    if (report.is_unknown()) return json.member("spans", std::optional<int>{});
    json.key("spans").array([&] {
      for (const SpanGroup& group : report.groups) json.object([&] { add_group(json, group, report); });
    });
    json.key("other_names").array([&] {
      for (const std::string& name : report.other_names) json.value(name);
    });
  });
  return std::string{json.text()} + '\n';
}

}  // namespace rtev
