// SPDX-License-Identifier: MIT
#include "analysis/latency/distribution_json.hpp"
#include "analysis/report_json.hpp"
#include "analysis/seen_stacks_json.hpp"
#include "analysis/spans/spans_json.hpp"
#include "analysis/stalls/stalls_report.hpp"

namespace rtev {
namespace {

void add_stall(JsonWriter& json, const Stall& stall, const StackTable* stacks) {
  json.member("tid", stall.tid);
  json.member("domain", stall.domain < 0 ? std::nullopt : std::optional(stall.domain));
  json.member("begin_ns", stall.begin_ns);
  json.member("duration_ns", stall.length_ns());
  json.member("has_returned", stall.has_returned);
  add_time(json, stall.time, stall.knows_pauses);
  json.text_or_null("blocked_in", stall.blocked_in == Syscall::unknown ? "" : to_string(stall.blocked_in));
  json.member("blocked_in_ns", stall.blocked_in_ns);
  if (stall.behind) {
    json.key("behind").object([&] {
      json.member("pid", stall.behind->thread.pid);
      json.member("tid", stall.behind->thread.tid);
      json.member("comm", stall.behind->thread.comm());
      json.member("ns", stall.behind->ns);
    });
  }
  if (!stall.task.empty()) json.member("task", stall.task);
  if (!stall.span.empty()) json.member("span", stall.span);
  if (stacks && !stall.stacks.empty()) add_seen_stacks(json.key("stacks"), stall.stacks, *stacks);
}

void add_loop_program(JsonWriter& json, const LoopProgram& program, const StackTable* stacks) {
  json.member("pid", program.pid);
  json.member("comm", program.comm);
  json.text_or_null("call", program.call == Syscall::unknown ? "" : to_string(program.call));
  json.member("threads", program.threads);
  json.key("turns").object([&] { add_distribution(json, program.turns); });
  json.member("unknown_turns", program.unknown_turns);
  json.member("stall_count", program.lengths.count());
  json.key("stalls").array([&] {
    for (const Stall& stall : program.stalls) json.object([&] { add_stall(json, stall, stacks); });
  });
}

}  // namespace

std::string stalls_json(const StallsReport& report) {
  JsonWriter json;
  json.object([&] {
    add_head(json, "stalls", report);
    json.member("min_ns", report.min_ns);
    json.member("scheduler_seen", report.scheduler_seen);
    json.member("syscalls_seen", known_flag(report.syscalls_seen, !report.scheduler_seen));
    json.member("lost_words", report.lost.known(report.truncated || report.read_programs.is_none()));
    json.member("sample_interval_ns", report.sample_interval_ns);
    add_sched_dropped(json, "scheduler_dropped", report.scheduler_dropped, report.scheduler_seen, report.truncated);
    json.member("turns_ns", known_count(report.turns_ns, report.is_unknown()));
    json.member("unknown_ns", known_count(report.unknown_ns, report.is_unknown()));
    json.member("not_followed", report.not_followed);
    if (report.is_unknown()) return json.member("programs", std::optional<int>{});
    json.key("programs").array([&] {
      for (const LoopProgram& program : report.programs)
        json.object([&] { add_loop_program(json, program, report.stacks); });
    });
  });
  return std::string{json.text()} + '\n';
}

}  // namespace rtev
