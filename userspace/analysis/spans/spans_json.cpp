// SPDX-License-Identifier: MIT
#include "analysis/spans/spans_json.hpp"

#include "analysis/latency/distribution_json.hpp"
#include "analysis/report_json.hpp"
#include "analysis/seen_stacks_json.hpp"
#include "analysis/spans/spans_report.hpp"

namespace rtev {

void add_time(JsonWriter& json, const SpanTime& time) {
  json.key("time_ns").object([&] {
    json.member("code", time.code);
    json.member("gc", time.gc);
    json.member("domains", time.domains);
    json.member("no_cpu", time.no_cpu);
    json.member("blocked", time.blocked);
    json.member("unknown", time.unknown);
  });
}

namespace {

void add_group(JsonWriter& json, const SpanGroup& group, const StackTable* stacks) {
  json.member("pid", group.pid);
  json.member("comm", group.comm);
  json.member("name", group.name);
  add_distribution(json, group.wall);
  json.member("below_min", group.below_min);
  json.member("unfinished", group.unfinished);
  add_time(json, group.time);
  json.key("slowest").array([&] {
    for (const Span& span : group.slowest) {
      json.object([&] {
        json.member("domain", span.domain);
        json.member("begin_ns", span.begin_ns);
        json.member("duration_ns", span.length_ns());
        add_time(json, span.time);
        json.member("pauses", span.pauses);
        json.member("longest_pause_ns", span.longest_pause_ns);
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
    json.member("lost_words", known_count(report.lost_words, report.truncated));
    json.member("ungrouped", report.ungrouped);
    json.key("spans").array([&] {
      for (const SpanGroup& group : report.groups) json.object([&] { add_group(json, group, report.stacks); });
    });
    json.key("other_names").array([&] {
      for (const std::string& name : report.other_names) json.value(name);
    });
  });
  return std::string{json.text()} + '\n';
}

}  // namespace rtev
