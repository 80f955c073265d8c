// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <map>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/place_text.hpp"
#include "analysis/report_text.hpp"
#include "analysis/tasks/tasks_report.hpp"
#include "base/folding.hpp"
#include "base/text_table.hpp"
#include "stream/program_key.hpp"

namespace rtev {
namespace {

/// They fit a terminal.
constexpr std::size_t max_task_programs = 2, max_runs = 3, max_operations = 4, max_waits = 2, max_failures = 1;
constexpr std::size_t operation_width = 24, error_width = 60;

struct RunPart {
  std::uint64_t SpanTime::* ns;
  std::string_view words;
};
constexpr std::array run_parts{
    RunPart{&SpanTime::code, "on CPU"},
    RunPart{&SpanTime::gc, "on CPU in the GC"},
    RunPart{&SpanTime::domains, "blocked in the GC"},
    RunPart{&SpanTime::no_cpu, "without a CPU"},
    RunPart{&SpanTime::blocked, "blocked"},
};

/// The time of day; seconds since the run began if that is unknown.
struct TimeOf {
  const TasksReport& report;
  std::uint64_t time_ns;
};

void append(TextBuffer& out, const TimeOf& when) {
  if (when.report.run_realtime_ns == 0) return append(out, Moment{when.time_ns, when.report.run_ns});
  add_time_of_day(out, when.report.run_realtime_ns + (when.time_ns - when.report.run_ns));
}

std::string_view nouns_of(TaskLibrary library, bool one) {
  if (library == TaskLibrary::eio) return one ? "fiber of Eio" : "fibers of Eio";
  return one ? "task of Miou" : "tasks of Miou";
}

class TasksText {
 public:
  explicit TasksText(const TasksReport& report) : report_(report), programs_(grouped(report)) {}

  std::string text() {
    if (report_.programs.empty()) {
      none();
    } else {
      verdicts();
      runs();
      operations();
      failures();
    }
    remarks();
    return std::string{out_.text()};
  }

 private:
  /// The tasks of a process, or of many ones of a program.
  struct Program {
    TaskProgram tasks;
    std::uint64_t processes = 1;
  };

  /// Those of programs with many processes together: not their runs and failures, which are of one each.
  static std::vector<Program> grouped(const TasksReport& report) {
    std::map<std::string_view, std::uint64_t> processes;
    for (const TaskProgram& program : report.programs) ++processes[program.comm];
    std::vector<Program> programs;
    std::map<std::pair<std::string_view, TaskLibrary>, std::size_t> together;
    for (const TaskProgram& program : report.programs) {
      const bool is_single = report.full || processes[program.comm] <= max_single_processes;
      const auto [place, is_first] = together.try_emplace({program.comm, program.library}, programs.size());
      if (is_single || is_first)
        programs.push_back({.tasks = program});
      else
        add(programs[place->second], program);
    }
    return programs;
  }

  static void add(Program& sum, const TaskProgram& program) {
    ++sum.processes;
    for (std::uint64_t TaskProgram::* const count :
         {&TaskProgram::created, &TaskProgram::finished, &TaskProgram::failed, &TaskProgram::cancelled})
      sum.tasks.*count += program.*count;
    for (std::size_t state = 0; state < task_state_count; ++state) sum.tasks.states[state] += program.states[state];
    sum.tasks.runs.merge(program.runs);
    add(sum.tasks.runnable, program.runnable);
    for (const TaskOperation& operation : program.operations) {
      const auto same = std::ranges::find(sum.tasks.operations, operation.name, &TaskOperation::name);
      if (same == sum.tasks.operations.end())
        sum.tasks.operations.push_back(operation);
      else
        add(*same, operation);
    }
  }

  static void add(TaskOperation& sum, const TaskOperation& operation) {
    const TaskOperation before = sum;
    if (operation.longest_ns > sum.longest_ns) sum = operation;
    sum.count = before.count + operation.count;
    sum.total_ns = before.total_ns + operation.total_ns;
  }

  static std::string who(const Program& program) {
    if (program.processes > 1) return fmt::format("{} x{}", Escaped{program.tasks.comm}, Grouped{program.processes});
    return fmt::format("{}", ProcessName{program.tasks.comm, program.tasks.pid});
  }

  struct Row {
    const TaskProgram* program;
    const TaskRun* run;
  };
  struct Operation {
    const Program* program;
    const TaskOperation* operation;

    bool is_runnable() const { return operation == &program->tasks.runnable; }
  };

  void line(std::string_view text, std::size_t indent = 0) { out_.add(folded(text, 0, indent), '\n'); }
  void cut_line(std::string_view text) {
    if (report_.full) return line(text, 11);
    out_.add(cut(text, text_columns()), '\n');
  }
  std::size_t shown(std::size_t few) const { return report_.full ? SIZE_MAX : few; }
  bool several() const { return report_.programs.size() > 1; }

  void none() {
    if (report_.is_unknown()) {
      const std::string what = report_.not_recorded.text({EventKind::user_custom});
      return line("tasks are unknown: " + (what.empty() ? why_none_read(report_.read_programs) : what), 2);
    }
    if (report_.start_ns > report_.run_ns)
      return line("no event of a task in this part of the recording: a task that ran all through it has none");
    line(
        "no task was seen: programs with Eio 0.14 or newer write events of their fibers, and programs with Miou those "
        "of their tasks if they set the reporter of its library miou.runtime_events and run with MIOU_TRACE=1");
  }

  void verdicts() {
    for (const Program& program : programs_ | std::views::take(shown(max_task_programs))) verdict(program);
    if (const std::size_t all = programs_.size(); all > shown(max_task_programs))
      print(out_, "and {} with shorter runs\n", Counted{all - max_task_programs, "other", "others"});
  }

  void verdict(const Program& of) {
    const TaskProgram& program = of.tasks;
    TextBuffer text;
    const std::uint64_t ended = program.finished + program.failed + program.cancelled;
    const std::uint64_t all = ended + program.alive();
    print(text, "{}: {} {}", who(of), Grouped{all}, nouns_of(program.library, all == 1));
    std::string_view separator = ": ";
    const auto add = [&](std::uint64_t count, std::string_view what) {
      if (count == 0) return;
      print(text, "{}{} {}", separator, Grouped{count}, what);
      separator = ", ";
    };
    add(program.finished, "finished");
    add(program.failed, "failed");
    add(program.cancelled, "cancelled");
    for (const TaskState state : {TaskState::running, TaskState::runnable, TaskState::suspended})
      add(program.states.at(static_cast<std::size_t>(state)), to_string(state));
    if (program.alive() > 0) text.add(" at the end");
    const Counted counted_runs{program.runs.count(), "run", "runs"};
    if (const auto p99 = program.runs.known_percentile(99)) {
      print(text, "; 99% of {} take up to {}; the longest run is {}", counted_runs, Duration{*p99},
            Duration{program.runs.max()});
    } else if (counted_runs.count > 0) {
      print(text, "; the longest of {} is {}", counted_runs, Duration{program.runs.max()});
    }
    line(text.text(), 2);
  }

  void runs() {
    std::vector<Row> rows;
    for (const TaskProgram& program : report_.programs)
      for (const TaskRun& run : program.longest) rows.push_back({&program, &run});
    std::ranges::sort(rows, [](const Row& a, const Row& b) {
      return std::pair(b.run->length_ns(), a.run->begin_ns) < std::pair(a.run->length_ns(), b.run->begin_ns);
    });
    if (rows.empty()) {
      print(out_, "\nno run of {} or longer without letting others run\n", Duration{report_.min_ns});
      return;
    }
    out_.add("\nlongest runs without letting others run\n");
    for (const Row& row : rows | std::views::take(shown(max_runs))) run(row, report_.full || &row == rows.data());
    if (report_.input.empty() || report_.full) return;
    print(out_, "  the longest one, with what was around it:\n  {}\n", command(*rows.front().run));
  }

  DumpCommand command(const TaskRun& run) const { return {report_.input, run.begin_ns, run.end_ns, report_.run_ns}; }

  /// `details`: what the domain did has a line of its own.
  void run(const Row& row, bool details) {
    const TaskRun& run = *row.run;
    TextBuffer text;
    print(text, "  {:>{}}  {}", Duration{run.length_ns()}, duration_width - 2, TaskName{run.task, report_.full});
    if (several()) print(text, " of {}", ProcessName{row.program->comm, row.program->pid});
    print(text, " on domain {} at {}", run.domain, TimeOf{report_, run.begin_ns});
    if (run.goes_on) text.add(", and went on at the end");
    const std::string what = activity(run);
    if (!details && !what.empty()) text.add(": ", what);
    cut_line(text.text());
    if (details && !what.empty()) cut_line("           " + what);
    waits(run);
    if (report_.full && !report_.input.empty()) print(out_, "           {}\n", command(run));
  }

  /// What the domain did meanwhile, the greatest parts.
  std::string activity(const TaskRun& run) const {
    TextBuffer text;
    std::vector<RunPart> order(run_parts.begin(), run_parts.end());
    std::ranges::sort(order, [&](const RunPart& a, const RunPart& b) { return run.time.*a.ns > run.time.*b.ns; });
    for (const RunPart& part : order | std::views::take(report_.full ? order.size() : 2)) {
      const std::uint64_t ns = run.time.*part.ns;
      if (ns <= run.length_ns() / 100) continue;
      if (!text.text().empty()) text.add(", ");
      if (ns < run.length_ns() - run.length_ns() / 100) print(text, "{} ", Duration{ns});
      text.add(part.words);
      if (const std::string place = place_of(run, part); !place.empty()) text.add(" in ", place);
    }
    if (report_.full && run.pauses > 0)
      print(text, "; {}, the longest {}", Counted{run.pauses, "GC pause", "GC pauses"}, Duration{run.longest_pause_ns});
    return std::string(text.text());
  }

  /// Where the thread was, if stacks are sampled.
  std::string place_of(const TaskRun& run, const RunPart& part) const {
    const bool code = part.ns == &SpanTime::code;
    if (!report_.stacks || (!code && part.ns != &SpanTime::blocked)) return {};
    const SampleKind kind = code ? SampleKind::on_cpu : SampleKind::off_cpu;
    return report_.full ? place_text(run.stacks, kind, *report_.stacks)
                        : short_place_text(run.stacks, kind, *report_.stacks);
  }

  void waits(const TaskRun& run) {
    if (run.waits.empty()) return;
    TextBuffer text;
    std::string_view separator = "           kept waiting: ";
    for (const TaskWait& wait : run.waits | std::views::take(shown(max_waits))) {
      print(text, "{}{} {}{}", separator, TaskName{wait.task, report_.full}, wait.certain ? "" : "up to ",
            Duration{wait.ns});
      if (!wait.operation.empty()) print(text, " ({})", operation_name(wait.operation));
      separator = ", ";
    }
    const std::uint64_t more = run.more_waits + run.waits.size() - std::min(run.waits.size(), shown(max_waits));
    if (more > 0) print(text, ", and {} more", Grouped{more});
    cut_line(text.text());
  }

  std::string operation_name(std::string_view name) const {
    if (name.empty()) return "(no name)";
    return report_.full ? escaped(name) : cut(escaped(name), operation_width);
  }

  void operations() {
    std::vector<Operation> rows;
    for (const Program& program : programs_) {
      if (program.tasks.runnable.count > 0) rows.push_back({&program, &program.tasks.runnable});
      for (const TaskOperation& operation : program.tasks.operations) rows.push_back({&program, &operation});
    }
    if (rows.empty()) return;
    // First how long tasks could run and did not: no operation of theirs explains that.
    const auto order = [](const Operation& row) {
      return std::tuple(row.is_runnable(), row.operation->longest_ns, row.program->tasks.pid);
    };
    std::ranges::sort(rows, [&](const Operation& a, const Operation& b) { return order(a) > order(b); });
    TextTable table;
    table.column("WAITED FOR", operation_width, TextTable::Align::left);
    table.column("TIMES", 0).column("TOTAL", duration_width).column("LONGEST", duration_width);
    for (const Operation& row : rows | std::views::take(shown(max_operations))) {
      const TaskOperation& operation = *row.operation;
      table.row();
      table.cell(row.is_runnable() ? "to run" : operation_name(operation.name));
      table.cell(operation.count);
      table.duration(operation.total_ns);
      table.duration(operation.longest_ns);
      TextBuffer text;
      append(text, TaskName{operation.task, report_.full});
      if (several()) print(text, " of {}", who(*row.program));
      print(text, " at {}", TimeOf{report_, operation.longest_begin_ns});
      if (operation.goes_on) text.add(" ...");
      table.remark(text.text());
    }
    if (rows.size() > shown(max_operations))
      table.line(fmt::format("and {}", Counted{rows.size() - max_operations, "more operation", "more operations"}));
    out_.add('\n');
    TextBuffer lines;
    table.write(lines);
    for (const auto each : std::views::split(lines.text(), '\n'))
      if (!each.empty())
        out_.add(report_.full ? std::string(std::string_view(each)) : cut(std::string_view(each), text_columns()),
                 '\n');
  }

  void failures() {
    bool first = true;
    for (const TaskProgram& program : report_.programs) {
      for (const TaskFailure& failure : program.failures | std::views::take(shown(max_failures))) {
        TextBuffer text;
        print(text, "failed at {}: {}", TimeOf{report_, failure.time_ns}, TaskName{failure.task, report_.full});
        print(text, ": {}", report_.full ? escaped(failure.error) : cut(escaped(failure.error), error_width));
        if (program.failed > 1 && !report_.full) print(text, ", and {} more", Grouped{program.failed - 1});
        if (first) out_.add('\n');
        first = false;
        cut_line(text.text());
      }
      if (!report_.full && !program.failures.empty()) return;
    }
  }

  void remarks() {
    TextBuffer text;
    add_lacks(text, report_.lacks);
    if (report_.lost.any() && !lacks_events(report_.lacks))
      print(text, "warning: {}: it is unknown what tasks did then\n", report_.lost.text());
    if (!report_.programs.empty() && report_.not_recorded.lacks_pauses())
      print(text, "{}: time in the GC is unknown\n", report_.not_recorded.text({EventKind::begin}));
    if (report_.not_followed > 0)
      print(text, "{} not counted: too many tasks or programs\n",
            Counted{report_.not_followed, "event was", "events were"});
    std::uint64_t others = 0;
    SpanTime time;
    for (const TaskProgram& program : report_.programs) {
      others += program.other_operations;
      for (const TaskRun& run : program.longest) time += run.time;
    }
    if (others > 0)
      print(text, "{} not counted: too many names\n", Counted{others, "suspension was", "suspensions were"});
    if (!report_.programs.empty() && !report_.scheduler_seen) {
      text.add("no scheduler events: it is unknown whether threads ran or waited\n");
    } else {
      add_unknown_time(text, time.unknown, time.total(), "runs", report_.not_recorded, report_.lacks);
    }
    if (text.text().empty()) return;
    out_.add('\n');
    add_lines(out_, text.text());
  }

  const TasksReport& report_;
  const std::vector<Program> programs_;
  TextBuffer out_;
};

}  // namespace

std::string tasks_text(const TasksReport& report) {
  return TasksText{report}.text();
}

}  // namespace rtev
