// SPDX-License-Identifier: MIT
// The report of tasks: long runs, what their time was spent on and who waited for them, suspensions by operation, ends.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "analysis/tasks/tasks_sink.hpp"
#include "base/utf8.hpp"
#include "support/files.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/analysis/tasks/eio_events.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr, testing::IsEmpty, testing::Not, testing::SizeIs, testing::StartsWith;

constexpr std::uint64_t ms = 1'000'000;

class TasksTest : public testing::Test {
 protected:
  TasksTest() { make({}); }
  void make(TasksOptions options) {
    tasks.emplace(std::move(options));
    tasks->header({.version = "1.2", .start_ns = 1000 * ms});
  }
  /// Times count from the start.
  TaskScript at(std::uint64_t time_ms) { return std::move(TaskScript(world).at(1000 * ms + time_ms * ms)); }
  static std::uint64_t time(std::uint64_t time_ms) { return 1000 * ms + time_ms * ms; }
  void feed(const TaskScript& script) { tasks->consume(script.batch(), world.registry); }
  void switches(std::uint64_t time_ms, const SchedSwitch& change) {
    tasks->consume(Events(0).add_record(time(time_ms), EventKind::sched_switch, change, 0, first_sched_stream).batch(),
                   world.registry);
  }
  static Thread main_thread() { return a_thread(4242, 4242, 0); }
  const TasksReport& report(std::uint64_t end_ms = 1000) {
    tasks->summary({.end_ns = time(end_ms)}, world.registry);
    return tasks->report();
  }
  TaskProgram program(std::uint64_t end_ms = 1000) {
    const auto& programs = report(end_ms).programs;
    EXPECT_THAT(programs, SizeIs(1));
    return programs.empty() ? TaskProgram{} : programs.front();
  }
  /// The longest one.
  static TaskRun longest(const TaskProgram& of) {
    EXPECT_THAT(of.longest, Not(IsEmpty()));
    return of.longest.empty() ? TaskRun{} : of.longest.front();
  }
  /// Fiber 12 runs for 290 ms while fiber 3 sleeps, fiber 4 could run and fiber 5 waits for something else.
  void starve() {
    feed(at(0).fiber(5).suspend("read").fiber(3).name(3, "ticker").suspend("sleep").fiber(4).yield());
    feed(at(10).fiber(12).name(12, "worker"));
    feed(at(300).suspend("Promise.await").fiber(4).suspend("read").poll(time(300) + 2000));
    feed(at(301).fiber(3).suspend("sleep").poll(time(400)));
    feed(at(401).fiber(5).suspend("read").poll(time(402)));
  }

  World world;
  std::optional<Tasks> tasks;
};

TEST_F(TasksTest, ALongRunKeepsOthersWaiting) {
  starve();
  const TaskRun run = longest(program());
  EXPECT_EQ(run.task.name, "worker");
  EXPECT_EQ(run.length_ns(), 290 * ms);
  ASSERT_THAT(run.waits, SizeIs(2)) << "fiber 5 was resumed after the domain had waited for events";
  EXPECT_EQ(run.waits[0].task.id, 4);
  EXPECT_TRUE(run.waits[0].certain);
  EXPECT_EQ(run.waits[0].ns, 290 * ms);
  EXPECT_EQ(run.waits[1].task.name, "ticker");
  EXPECT_FALSE(run.waits[1].certain);
  EXPECT_EQ(run.waits[1].operation, "sleep");
}

TEST_F(TasksTest, ToAskForEventsMayTakeLongWithoutACpu) {
  switches(0, enters(main_thread()));
  feed(at(0).fiber(3).suspend("sleep").fiber(4).suspend("read").fiber(12));
  feed(at(300).suspend("read"));
  switches(301, leaves(main_thread(), LeftState::preempted, 0, competitor()));
  switches(309, enters(main_thread(), 0, competitor()));
  feed(at(300).poll(time(310)));
  feed(at(311).fiber(3).suspend("sleep"));
  switches(320, leaves(main_thread(), LeftState::sleeping));
  switches(330, enters(main_thread()));
  feed(at(312).poll(time(340)));
  feed(at(341).fiber(4).suspend("read"));
  const TaskRun run = longest(program());
  ASSERT_THAT(run.waits, SizeIs(1));
  EXPECT_EQ(run.waits[0].task.id, 3);
}

TEST_F(TasksTest, WhoWaitsForTheTaskThatRunsIsNotKeptWaiting) {
  feed(at(0).fiber(1).suspend("Switch.await_idle").fiber(2).suspend("await_cancel").fiber(3));
  feed(at(300).exit_fiber(3).fiber(1).suspend("sleep").fiber(2));
  EXPECT_THAT(longest(program()).waits, IsEmpty());
}

TEST_F(TasksTest, TheTextNamesTheRunAndWhoWaited) {
  starve();
  report();
  const std::string text = tasks->report_text();
  EXPECT_THAT(text, HasSubstr("server/4242: 4 fibers of Eio"));
  EXPECT_THAT(text, HasSubstr("290ms  fiber 12 \"worker\" on domain 0 at 0.010000000 s"));
  EXPECT_THAT(text, HasSubstr("kept waiting: fiber 4 290ms, fiber 3 \"ticker\" up to 290ms (sleep)\n"));
  EXPECT_THAT(text, HasSubstr("no scheduler events"));
}

TEST_F(TasksTest, SuspensionsAreGroupedByOperation) {
  feed(at(0).fiber(1).suspend("sleep").fiber(2).suspend("read"));
  feed(at(20).fiber(1).suspend("sleep"));
  feed(at(50).fiber(1).suspend("sleep"));
  const TaskProgram found = program(60);
  ASSERT_THAT(found.operations, SizeIs(2));
  EXPECT_EQ(found.operations[0].name, "read");
  EXPECT_TRUE(found.operations[0].goes_on);
  EXPECT_EQ(found.operations[1].count, 3u);
  EXPECT_EQ(found.operations[1].total_ns, 60 * ms);
  EXPECT_EQ(found.operations[1].longest_ns, 30 * ms);
}

TEST_F(TasksTest, TimeOfARunIsSplit) {
  switches(0, enters(main_thread()));
  feed(at(10).fiber(1));
  feed(at(20).script("20000000 >major", time(0)));
  feed(at(30).script("50000000 <major", time(0)));
  switches(60, leaves(main_thread(), LeftState::preempted, 0, competitor()));
  switches(70, enters(main_thread(), 0, competitor()));
  feed(at(80).suspend("sleep"));
  const TaskRun run = longest(program());
  EXPECT_EQ(run.time.gc, 30 * ms);
  EXPECT_EQ(run.time.no_cpu, 10 * ms);
  EXPECT_EQ(run.time.code, 30 * ms);
  EXPECT_EQ(run.pauses, 1u);
  EXPECT_EQ(run.longest_pause_ns, 30 * ms);
}

TEST_F(TasksTest, ATaskThatRunsAtTheEndKeepsOthersWaitingStill) {
  feed(at(0).fiber(1).create_fiber(2, 0).fiber(2));
  const TaskRun run = longest(program(500));
  EXPECT_EQ(run.task.id, 2);
  EXPECT_TRUE(run.goes_on);
  EXPECT_EQ(run.length_ns(), 500 * ms);
  ASSERT_THAT(run.waits, SizeIs(1));
  EXPECT_EQ(run.waits[0].task.id, 1);
  EXPECT_EQ(run.waits[0].ns, 500 * ms);
}

TEST_F(TasksTest, CountsEndsAndStates) {
  feed(at(0).create_context(9, 6).create_fiber(1, 9).fiber(1).create_context(8, 3).create_fiber(2, 8).fiber(2));
  feed(at(1).error(8, "Failure(\"\x1b[2J\")").exit_fiber(2).fiber(1).create_fiber(3, 8).fiber(3).suspend("read"));
  const TaskProgram found = program();
  EXPECT_EQ(found.created, 3u);
  EXPECT_EQ(found.failed, 1u);
  EXPECT_EQ(found.states, (std::array<std::uint64_t, 3>{1, 0, 1}));
  EXPECT_THAT(tasks->report_text(), HasSubstr("fiber 2: Failure(\"\\x1B[2J\")"));
}

TEST_F(TasksTest, ALossEndsNoRun) {
  feed(at(0).fiber(1).at(time(100)).loss().at(time(101)).fiber(2).suspend("read"));
  const TaskProgram found = program();
  EXPECT_THAT(found.longest, IsEmpty());
  EXPECT_EQ(found.runs.count(), 1u);
  EXPECT_EQ(report().lost.words, 10u);
  EXPECT_THAT(tasks->report_text(), HasSubstr("10 ring words were lost"));
}

TEST_F(TasksTest, WithoutTasksItSaysWhichProgramsHaveThem) {
  report();
  EXPECT_THAT(tasks->report_text(), HasSubstr("no task was seen: programs with Eio 0.14"));
  EXPECT_EQ(tasks->limited().why_none, "no task was seen");
  EXPECT_THAT(tasks_text({.run_ns = 1, .start_ns = 2}), StartsWith("no event of a task in this part of the recording"));
}

TEST_F(TasksTest, FitsAScreen) {
  for (std::int64_t id = 1; id <= 200; ++id) {
    const std::string name = "a fiber with a long name " + std::to_string(id) + std::string(40, 'x');
    const auto begin = static_cast<std::uint64_t>(id) * 100;
    feed(at(begin).fiber(id).name(id, name).at(time(begin + 50)).suspend("operation " + name));
  }
  report(100'000);
  const std::string text = tasks->report_text();
  EXPECT_LE(std::ranges::count(text, '\n'), 24) << text;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    EXPECT_LE(columns_of(text.substr(begin, end - begin)), 100u) << text.substr(begin, end - begin);
    begin = end + 1;
  }
  EXPECT_EQ(tasks->report().programs.front().longest.size(), Tasks::max_runs);
  EXPECT_EQ(tasks->report().programs.front().operations.size(), Tasks::max_operations);
}

TEST_F(TasksTest, BoundsPrograms) {
  for (std::size_t i = 0; i < Tasks::max_programs + 1; ++i) {
    ProcessInfo info = World::default_info();
    info.pid += static_cast<std::int32_t>(i) + 1;
    world.slot = world.add_ring(world.registry.add_process(info));
    feed(at(0).fiber(1).suspend("read"));
  }
  EXPECT_THAT(report().programs, SizeIs(Tasks::max_programs));
  EXPECT_GT(tasks->report().not_followed, 0u);
}

TEST_F(TasksTest, HostileNamesAreEscaped) {
  for (const std::string& name : hostile_strings()) {
    feed(at(0).fiber(1).name(1, name));
    feed(at(100).suspend(name));
    feed(at(200).fiber(1).suspend("x"));
  }
  report();
  for (const bool full : {false, true}) {
    TasksReport copy = tasks->report();
    copy.full = full;
    const std::string text = tasks_text(copy);
    EXPECT_TRUE(std::ranges::none_of(text, [](char c) { return c != '\n' && (c & 0xE0) == 0; })) << text;
  }
  EXPECT_TRUE(nlohmann::json::accept(tasks->report_json()));
}

TEST_F(TasksTest, LimitsApplyToRuns) {
  starve();
  report();
  const LimitedDurations limited = tasks->limited();
  ASSERT_THAT(limited.all, SizeIs(1));
  EXPECT_EQ(limited.all[0].durations->max(), 290 * ms);
}

TEST(TasksText, ManyProcessesOfAProgramHaveOneSentence) {
  TasksReport report;
  for (std::int32_t pid = 1; pid <= 6; ++pid) {
    TaskProgram& program = report.programs.emplace_back(TaskProgram{.pid = pid, .comm = "worker", .finished = 2});
    program.operations.push_back({.name = "sleep", .count = 3, .total_ns = 30, .longest_ns = 10});
  }
  const std::string text = tasks_text(report);
  EXPECT_THAT(text, StartsWith("worker x6: 12 fibers of Eio: 12 finished"));
  EXPECT_THAT(text, HasSubstr("18    180ns"));
  EXPECT_THAT(text, Not(HasSubstr("more operation")));
}

}  // namespace
}  // namespace rtev::test
