// SPDX-License-Identifier: MIT
// Tasks from the events of Eio and Miou: their states, names and ends, losses, and payloads that no library writes.
#include "analysis/tasks/task_tracker.hpp"

#include <gmock/gmock.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "unit/analysis/tasks/eio_events.hpp"

namespace rtev::test {
namespace {

using testing::ElementsAre, testing::IsEmpty;

class TaskTrackerTest : public testing::Test, protected TaskObserver {
 protected:
  void feed(const TaskScript& script) { tracker.add_all(script.batch(), world.registry); }
  TaskScript script() { return TaskScript(world); }

  struct Tracker : TaskTracker {
    using TaskTracker::TaskTracker;
    void add_all(const Batch& batch, const Registry& registry) {
      for (const Event& event : batch.events()) add(event, batch, registry);
    }
  };

  World world;
  std::vector<std::string> seen;
  Tracker tracker{this};

 private:
  static std::string label(const Task& task) {
    TextBuffer text;
    append(text, TaskName{task});
    return std::string(text.text());
  }
  void on_task_created(ProcessIndex, const Task& task) override {
    seen.push_back(label(task) + " created" + (task.creator ? " by " + std::to_string(*task.creator) : ""));
  }
  void on_task_interval(ProcessIndex, const Task& task, const TaskInterval& interval) override {
    seen.push_back(std::to_string(interval.begin_ns) + "-" + std::to_string(interval.end_ns) + " " + label(task) + " " +
                   std::string(to_string(interval.state)) +
                   (interval.operation.empty() ? "" : " " + std::string(interval.operation)) +
                   (interval.goes_on ? " ..." : ""));
  }
  void on_task_end(ProcessIndex, const Task& task, TaskEnd how, std::string_view error, std::uint64_t) override {
    seen.push_back(label(task) + " " + std::string(to_string(how)) + (error.empty() ? "" : ": " + std::string(error)));
  }
};

TEST_F(TaskTrackerTest, FollowsAFiberThroughItsStates) {
  feed(script()
           .at(10)
           .create_context(1, 6)
           .create_fiber(2, 1)
           .at(20)
           .fiber(2)
           .name(2, "main")
           .at(30)
           .suspend("sleep")
           .at(50)
           .fiber(2)
           .at(60)
           .exit_fiber(2));
  EXPECT_THAT(seen, ElementsAre("fiber 2 created", "10-20 fiber 2 runnable", "20-30 fiber 2 \"main\" running",
                                "30-50 fiber 2 \"main\" suspended sleep", "50-60 fiber 2 \"main\" running",
                                "fiber 2 \"main\" finished"));
}

TEST_F(TaskTrackerTest, AForkRunsAtOnceAndItsCreatorCanRun) {
  feed(script().at(10).fiber(1).at(20).create_fiber(2, 0).fiber(2).at(30).suspend("read").fiber(1).at(40).yield());
  EXPECT_THAT(seen, ElementsAre("fiber 2 created by 1", "10-20 fiber 1 running", "20-20 fiber 2 runnable",
                                "20-30 fiber 2 running", "20-30 fiber 1 runnable", "30-40 fiber 1 running"));
  EXPECT_EQ(tracker.running(world.process, 0), nullptr);
}

TEST_F(TaskTrackerTest, AFiberCanRunOnceItsPromiseIsResolved) {
  feed(script()
           .at(10)
           .fiber(1)
           .suspend("Promise.await")
           .try_get(7)
           .at(20)
           .fiber(2)
           .at(25)
           .put(8)
           .put(7)
           .at(30)
           .exit_fiber(2)
           .fiber(1));
  EXPECT_THAT(seen, ElementsAre("10-10 fiber 1 running", "10-25 fiber 1 suspended Promise.await",
                                "20-30 fiber 2 running", "fiber 2 finished", "25-30 fiber 1 runnable"));
}

TEST_F(TaskTrackerTest, AMutexPassesToTheFirstThatWaits) {
  feed(script().at(10).fiber(1).try_get(7).suspend("Mutex.lock").fiber(2).try_get(7).suspend("Mutex.lock"));
  seen.clear();
  feed(script().at(20).fiber(3).at(30).put(7).at(40).put(7));
  EXPECT_THAT(seen, ElementsAre("10-30 fiber 1 suspended Mutex.lock", "10-40 fiber 2 suspended Mutex.lock"));
}

TEST_F(TaskTrackerTest, AnErrorOfItsContextFailsTheFiberAndCancelsTheOthers) {
  feed(script()
           .at(10)
           .fiber(1)
           .create_context(9, 3)
           .create_fiber(2, 9)
           .fiber(2)
           .suspend("sleep")
           .fiber(1)
           .create_fiber(3, 9)
           .fiber(3)
           .error(9, "Failure(\"no\")")
           .exit_fiber(3)
           .fiber(2)
           .exit_fiber(2)
           .fiber(1)
           .exit_context()
           .exit_fiber(1));
  EXPECT_THAT(seen, testing::Contains("fiber 3 failed: Failure(\"no\")"));
  EXPECT_THAT(seen, testing::Contains("fiber 2 cancelled"));
  EXPECT_THAT(seen, testing::Contains("fiber 1 finished"));
}

TEST_F(TaskTrackerTest, AResultThatIsFirstCancelsAndDoesNotFail) {
  feed(
      script().at(10).fiber(1).create_context(9, 7).create_fiber(2, 9).fiber(2).error(9, "Eio__core__Fiber.Not_first"));
  feed(script().at(20).exit_fiber(2));
  EXPECT_EQ(seen.back(), "fiber 2 cancelled");
}

TEST_F(TaskTrackerTest, NamesAContextAndThoseAroundIt) {
  feed(script().at(10).create_context(1, 6).create_fiber(2, 1).fiber(2).create_context(3, 3).name(3, "main\n"));
  EXPECT_EQ(tracker.context_text(world.process, 3), "switch 3 \"main\\x0A\" in root 1");
  EXPECT_EQ(tracker.context_text(world.process, 4), "");
}

TEST_F(TaskTrackerTest, AFiberWithoutANameHasThatOfItsContext) {
  feed(script().at(10).create_context(1, 3).name(1, "server").create_fiber(2, 1).fiber(2));
  EXPECT_EQ(tracker.running_name(world.process, 0), "fiber 2 of \"server\"");
  feed(script().at(20).name(2, "worker"));
  EXPECT_EQ(tracker.running_name(world.process, 0), "fiber 2 \"worker\"");
}

TEST_F(TaskTrackerTest, ALossMakesTheCurrentFiberUnknownUntilTheNextEventSays) {
  feed(script().at(10).fiber(1).at(20).suspend("read").fiber(2));
  EXPECT_EQ(tracker.running_name(world.process, 0), "fiber 2");
  feed(script().at(30).loss());
  EXPECT_EQ(tracker.running_name(world.process, 0), "");
  seen.clear();
  feed(script().at(40).suspend("sleep").at(50).fiber(1).at(60).suspend("sleep"));
  // Neither how long fiber 1 was suspended nor how long fiber 2 ran is known.
  EXPECT_THAT(seen, ElementsAre("50-60 fiber 1 running"));
}

TEST_F(TaskTrackerTest, DomainsHaveFibersOfTheirOwn) {
  feed(script().at(10).on(0).fiber(1).on(1).fiber(2).at(20).on(0).loss().at(30).on(1).suspend("read"));
  EXPECT_EQ(tracker.running_name(world.process, 0), "");
  EXPECT_THAT(seen, ElementsAre("10-30 fiber 2 running"));
}

TEST_F(TaskTrackerTest, FollowsTasksOfMiou) {
  feed(script()
           .at(10)
           .miou_spawn(1, -1)
           .at(20)
           .miou("begin", 1)
           .miou_spawn(2, 1)
           .miou_suspend(1, "sleep")
           .at(30)
           .miou("end", 1)
           .at(31)
           .miou("await", 1)
           .at(40)
           .miou("begin", 2)
           .miou("cancel", 2)
           .at(50)
           .miou("resume", 1)
           .at(60)
           .miou("end", 2)
           .miou("done", 2)
           .at(61)
           .miou("begin", 1));
  EXPECT_THAT(
      seen, ElementsAre("task 1 created", "10-20 task 1 runnable", "task 2 created by 1", "20-30 task 1 running",
                        "30-31 task 1 runnable", "20-40 task 2 runnable", "31-50 task 1 suspended sleep",
                        "40-60 task 2 running", "60-60 task 2 runnable", "task 2 cancelled", "50-61 task 1 runnable"));
}

TEST_F(TaskTrackerTest, TasksOfMiouHaveTheLineThatCreatedThem) {
  feed(script().at(10).miou_spawn(7, 1).miou_location(7, "src/shop.ml", 42).at(20).miou("begin", 7));
  EXPECT_EQ(tracker.running_name(world.process, 0), "task 7 \"shop.ml:42\"");
  feed(script().at(30).miou_spawn(8, 1).miou_location(8, std::string(1000, 'x'), -1).at(40).miou("begin", 8));
  EXPECT_LE(tracker.find(world.process, TaskLibrary::miou, 8)->name.size(), TaskTracker::max_text_bytes);
}

TEST_F(TaskTrackerTest, TasksOfMiouThatTheStandardLibraryCreatedHaveTheNameOfTheirFunction) {
  StackTable& stacks = world.registry.stacks();
  const auto stack = [&](std::initializer_list<const char*> outermost_first) {
    StackIndex index = 0;
    for (const std::string_view name : outermost_first)
      index = stacks.add_stack(
          index,
          stacks.add_frame({.kind = name.starts_with("caml_") ? FrameKind::c : FrameKind::ocaml, .function = name}));
    return index;
  };
  const auto sample = [&](StackIndex of, SampleKind kind = SampleKind::on_cpu, std::int32_t domain = 0) {
    Sample taken{};
    taken.process = world.process;
    taken.domain = domain;
    taken.holds_lock = true;
    taken.stack = of;
    tracker.add_all(
        Events(0).add_record(25, EventKind::sample, taken, static_cast<std::uint16_t>(kind), sample_stream).batch(),
        world.registry);
    return tracker.running_name(world.process, 0);
  };
  const StackIndex in_task = stack({"Main.run", "Miou.run", "Miou.State.make", "caml_runstack", "Stdlib.Fun.protect",
                                    "Shop.serve", "Stdlib.List.iter", "Shop.answer", "caml_c_call"});
  feed(script().at(10).miou_spawn(7, 1).miou_location(7, "list.ml", 87).at(20).miou("begin", 7));
  EXPECT_EQ(tracker.running_name(world.process, 0), "task 7 \"list.ml:87\"");
  EXPECT_EQ(sample(stack({"Main.run", "Miou.run"})), "task 7 \"list.ml:87\"") << "not on the stack of a task";
  EXPECT_EQ(sample(stack({"Main.run", "caml_runstack", "Shop.serve"})), "task 7 \"list.ml:87\"") << "not Miou's stack";
  EXPECT_EQ(sample(in_task, SampleKind::off_cpu), "task 7 \"list.ml:87\"");
  EXPECT_EQ(sample(in_task, SampleKind::on_cpu, 1), "task 7 \"list.ml:87\"");
  EXPECT_EQ(sample(in_task), "task 7 \"Shop.serve\"");
  EXPECT_EQ(sample(stack({"Miou.run", "caml_runstack", "Other.f"})), "task 7 \"Shop.serve\"") << "the first one stays";
  feed(script().at(30).miou("done", 7).miou_spawn(8, 1).miou_location(8, "src/list.ml", 87).at(40).miou("begin", 8));
  EXPECT_EQ(sample(in_task), "task 8 \"list.ml:87\"") << "a file of the program";
}

TEST_F(TaskTrackerTest, AnOperationOfMiouWithoutANameIsOne) {
  feed(script()
           .at(10)
           .miou("begin", 1)
           .at(20)
           .miou_suspend(1, "41")
           .miou("end", 1)
           .miou("await", 1)
           .at(30)
           .miou("begin", 1));
  EXPECT_THAT(seen, testing::Contains("20-30 task 1 suspended suspend"));
}

TEST_F(TaskTrackerTest, IgnoresPayloadsThatNoLibraryWrites) {
  feed(script()
           .at(10)
           .custom("eio.create_fiber", "short")
           .custom("eio.create_fiber", std::string(17, 'x'))
           .custom("eio.fiber", std::string(8, '\1'))
           .custom("eio.name", "")
           .integer("eio.suspend_fiber", 1)
           .create_context(1, 99)
           .exit_context()
           .exit_fiber(5)
           .suspend("read"));
  EXPECT_THAT(seen, IsEmpty());
  EXPECT_EQ(tracker.running(world.process, 0), nullptr);
}

TEST_F(TaskTrackerTest, ANameMayComeAfterTheFirstEventsThatNeedIt) {
  world.user_names[5] = "";
  const auto event = [&](std::uint64_t time) { return Events(world.slot).add(time, EventKind::user_int, 5, 1); };
  const Events early = event(10);
  tracker.add_all(early.batch(), world.registry);
  EXPECT_EQ(tracker.running(world.process, 0), nullptr);
  world.user_names[5] = "eio.fiber";
  const Events later = event(20);
  tracker.add_all(later.batch(), world.registry);
  EXPECT_NE(tracker.running(world.process, 0), nullptr);
}

TEST_F(TaskTrackerTest, BoundsTasksAndReportsWhatGoesOn) {
  Tracker small{this, {.tasks = 2, .contexts = 1, .domains = 1}};
  const TaskScript many =
      script().at(10).fiber(1).suspend("a").fiber(2).suspend("b").fiber(3).create_context(1, 3).fiber(1);
  small.add_all(many.batch(), world.registry);
  EXPECT_EQ(small.not_followed(), 1u);
  EXPECT_EQ(small.find(world.process, TaskLibrary::eio, 3), nullptr);
  EXPECT_EQ(small.counts(world.process)[0], (std::array<std::uint64_t, 3>{0, 1, 1}));
  seen.clear();
  small.finish(90);
  EXPECT_THAT(seen, ElementsAre("10-90 fiber 1 running ...", "10-90 fiber 2 suspended b ..."));
}

TEST_F(TaskTrackerTest, LossesMakeRoom) {
  Tracker small{this, {.tasks = 2}};
  const TaskScript before = script().at(10).fiber(1).suspend("a").fiber(2).suspend("b").at(20).loss();
  small.add_all(before.batch(), world.registry);
  const TaskScript after = script().at(30).fiber(3);
  small.add_all(after.batch(), world.registry);
  EXPECT_EQ(small.not_followed(), 0u);
  EXPECT_EQ(small.running_name(world.process, 0), "fiber 3");
}

TEST_F(TaskTrackerTest, TasksEndWithTheirProcess) {
  feed(script().at(10).fiber(1));
  const Events exit = Events(0).add_record(20, EventKind::process, ProcessRecord{world.process, 0, 0},
                                           static_cast<std::uint16_t>(ProcessAction::exit));
  tracker.add_all(exit.batch(), world.registry);
  EXPECT_THAT(seen, ElementsAre("10-20 fiber 1 running ..."));
  EXPECT_EQ(tracker.find(world.process, TaskLibrary::eio, 1), nullptr);
}

TEST_F(TaskTrackerTest, CutsLongTextsBetweenCharacters) {
  std::string name(63, 'x');
  name += "\xc3\xa9";
  feed(script().at(10).fiber(1).name(1, name));
  EXPECT_EQ(tracker.find(world.process, TaskLibrary::eio, 1)->name, std::string(63, 'x'));
  EXPECT_EQ(tracker.running_name(world.process, 0), "fiber 1 \"" + std::string(24, 'x') + "\"...");
}

}  // namespace
}  // namespace rtev::test
