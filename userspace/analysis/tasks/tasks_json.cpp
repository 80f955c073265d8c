// SPDX-License-Identifier: MIT
#include "analysis/latency/distribution_json.hpp"
#include "analysis/report_json.hpp"
#include "analysis/seen_stacks_json.hpp"
#include "analysis/spans/spans_json.hpp"
#include "analysis/tasks/tasks_report.hpp"

namespace rtev {
namespace {

void add_task(JsonWriter& json, const Task& task) {
  json.object([&] {
    json.member("id", task.id);
    json.member("name", task.name);
    if (task.creator) json.member("creator", *task.creator);
    if (task.context) json.member("context", *task.context);
    if (!task.context_name.empty()) json.member("context_name", task.context_name);
  });
}

void add_operation(JsonWriter& json, const TaskOperation& operation) {
  json.object([&] {
    json.member("name", operation.name);
    json.member("count", operation.count);
    json.member("total_ns", operation.total_ns);
    json.member("max_ns", operation.longest_ns);
    if (operation.count == 0) return;
    add_task(json.key("task"), operation.task);
    json.member("begin_ns", operation.longest_begin_ns);
    json.member("goes_on", operation.goes_on);
  });
}

void add_task_run(JsonWriter& json, const TaskRun& run, const StackTable* stacks, bool knows_pauses) {
  add_task(json.key("task"), run.task);
  json.member("domain", run.domain);
  json.member("begin_ns", run.begin_ns);
  json.member("duration_ns", run.length_ns());
  json.member("goes_on", run.goes_on);
  add_time(json, run.time, knows_pauses);
  json.member("pauses", run.pauses);
  json.member("longest_pause_ns", run.longest_pause_ns);
  json.key("waits").array([&] {
    for (const TaskWait& wait : run.waits) {
      json.object([&] {
        add_task(json.key("task"), wait.task);
        json.member("certain", wait.certain);
        json.member("operation", wait.operation);
        json.member("ns", wait.ns);
      });
    }
  });
  json.member("more_waits", run.more_waits);
  if (stacks && !run.stacks.empty()) add_seen_stacks(json.key("stacks"), run.stacks, *stacks);
}

void add_task_program(JsonWriter& json, const TaskProgram& program, const StackTable* stacks, bool knows_pauses) {
  json.member("pid", program.pid);
  json.member("comm", program.comm);
  json.member("library", to_string(program.library));
  json.member("created", program.created);
  json.member("finished", program.finished);
  json.member("failed", program.failed);
  json.member("cancelled", program.cancelled);
  for (std::size_t state = 0; state < task_state_count; ++state)
    json.member(to_string(static_cast<TaskState>(state)), program.states.at(state));
  json.key("runs").object([&] { add_distribution(json, program.runs); });
  add_operation(json.key("waits_to_run"), program.runnable);
  json.key("operations").array([&] {
    for (const TaskOperation& operation : program.operations) add_operation(json, operation);
  });
  json.member("other_operations", program.other_operations);
  json.key("longest").array([&] {
    for (const TaskRun& run : program.longest) json.object([&] { add_task_run(json, run, stacks, knows_pauses); });
  });
  json.key("failures").array([&] {
    for (const TaskFailure& failure : program.failures) {
      json.object([&] {
        add_task(json.key("task"), failure.task);
        json.member("error", failure.error);
        json.member("failed_ns", failure.time_ns);
      });
    }
  });
}

}  // namespace

std::string tasks_json(const TasksReport& report) {
  JsonWriter json;
  json.object([&] {
    add_head(json, "tasks", report);
    json.member("min_ns", report.min_ns);
    json.member("scheduler_seen", report.scheduler_seen);
    json.member("lost_words", report.lost.known(report.truncated || report.is_unknown()));
    json.member("not_followed", report.not_followed);
    if (report.is_unknown()) return json.member("programs", std::optional<int>{});
    json.key("programs").array([&] {
      for (const TaskProgram& program : report.programs)
        json.object([&] { add_task_program(json, program, report.stacks, !report.not_recorded.lacks_pauses()); });
    });
  });
  return std::string{json.text()} + '\n';
}

}  // namespace rtev
