// SPDX-License-Identifier: MIT
// Start, change and end of processes and rings, and the stream's records of them.
#include <signal.h>

#include <algorithm>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

std::vector<Json> lifecycle(const Trace& trace, pid_t pid, const std::string& name) {
  std::vector<Json> found = trace.of(pid, "lifecycle");
  std::erase_if(found, [&](const Json& event) { return event["name"] != name; });
  return found;
}

std::size_t minor_collections(const Trace& trace, pid_t pid, std::uint64_t from = 0, std::uint64_t to = UINT64_MAX) {
  const auto begins = trace.of(pid, "begin");
  return static_cast<std::size_t>(std::ranges::count_if(begins, [&](const Json& event) {
    const std::uint64_t time = event["ts"];
    return event["name"] == "minor" && from <= time && time < to;
  }));
}

struct StartWay {
  const char* label;
  const char* program;
  bool events_from_start;
  bool before_tracer;
  Strings actions;
};

class StartLive : public LiveTest, public ::testing::WithParamInterface<StartWay> {};

TEST_P(StartLive, IsFollowedFromStartToEnd) {
  const StartWay& way = GetParam();
  const Command command = way.events_from_start ? with_events(way.program) : program(way.program);
  // Another process of the same binary runs already, so that the probes are attached before the tested process starts.
  Process known(program(way.program), "ready");

  std::optional<Tracer> tracer;
  if (!way.before_tracer) tracer.emplace(Strings{"--sched", "off"});
  Process process(command, "ready");
  if (way.before_tracer) tracer.emplace(Strings{"--sched", "off"});
  const Outcome outcome = run_through(process);
  ASSERT_EQ(outcome.status.code(), 0) << outcome.err;
  const Trace trace = tracer->stop();

  const pid_t pid = process.pid();
  EXPECT_EQ(trace.actions(pid), way.actions);
  const Json first = trace.action(pid, way.actions.front());
  EXPECT_EQ(first["exe"], command.argv[0]);
  EXPECT_EQ(first["comm"], way.program);
  EXPECT_EQ(first["version"], "5.3");
  EXPECT_EQ(first["ns_pid"], pid);
  EXPECT_EQ(trace.action(pid, "ring")["path"], ring_of(pid).string());
  EXPECT_EQ(trace.action(pid, "exit")["status"], Json({{"code", 0}}));

  EXPECT_GT(minor_collections(trace, pid), 0u);
  auto words = trace.words(pid);
  EXPECT_EQ(words["unread"], 0u);
  EXPECT_EQ(words["lost"], 0u);
  EXPECT_EQ(words["corrupt"], 0u);
  const bool has_history = way.before_tracer && way.events_from_start;
  EXPECT_EQ(words["before_attach"] > 0, has_history) << words["before_attach"];
  const auto starts = lifecycle(trace, pid, "ring_start");
  ASSERT_THAT(starts, SizeIs(has_history ? 0 : 1));
  if (!has_history) {
    EXPECT_EQ(starts[0]["value"], pid);
  }
  EXPECT_THAT(lifecycle(trace, pid, "ring_stop"), SizeIs(1));
  EXPECT_THAT(trace.actions(known.pid()), ElementsAre("found"));
}

INSTANTIATE_TEST_SUITE_P(
    Ways, StartLive,
    ::testing::Values(
        StartWay{"EnvBefore", "busy_alloc", true, true, {"found", "ring", "stop", "exit"}},
        StartWay{"EnvAfter", "busy_alloc", true, false, {"exec", "ring", "stop", "exit"}},
        StartWay{"ApiBefore", "api_start", false, true, {"found", "ring", "pause", "resume", "stop", "exit"}},
        StartWay{"ApiAfter", "api_start", false, false, {"exec", "ring", "pause", "resume", "stop", "exit"}}),
    by_label);

class LifecycleLive : public LiveTest {};

TEST_F(LifecycleLive, HistoryIsDeliveredOnRequest) {
  Process process(with_events("busy_alloc", {"3"}), "ready");
  process.go_until("done");
  Tracer tracer({"--sched", "off", "--history", "-p", std::to_string(process.pid())});
  const Trace trace = tracer.stop();
  expect_all_delivered(trace, process.pid());
  EXPECT_THAT(lifecycle(trace, process.pid(), "ring_start"), SizeIs(1));
  EXPECT_GE(minor_collections(trace, process.pid()), 3u);
}

TEST_F(LifecycleLive, NothingIsWrittenBetweenPauseAndResume) {
  Process process(program("api_start"), "ready");
  Tracer tracer({"--sched", "off"});
  const pid_t pid = process.pid();
  run_through(process);
  const Trace trace = tracer.stop();
  const std::uint64_t pause = trace.action(pid, "pause").value("ts", std::uint64_t{0});
  const std::uint64_t resume = trace.action(pid, "resume").value("ts", std::uint64_t{0});
  EXPECT_LT(pause, resume);
  EXPECT_GT(minor_collections(trace, pid, 0, pause), 0u);
  EXPECT_EQ(minor_collections(trace, pid, pause, resume), 0u);
  EXPECT_GT(minor_collections(trace, pid, resume), 0u);
  EXPECT_THAT(lifecycle(trace, pid, "ring_resume"), SizeIs(1));
}

TEST_F(LifecycleLive, ForkedChildHasItsOwnRing) {
  Process known(program("forker"), "ready");
  Tracer tracer({"--sched", "off"});
  Process process(with_events("forker"));
  process.close_stdin();
  const Strings lines = process.lines_until("done");
  process.wait();
  const Trace trace = tracer.stop();

  const pid_t parent = process.pid(), child = std::stoi(lines.back().substr(std::string("child ").size()));
  EXPECT_THAT(trace.actions(parent), ElementsAre("exec", "ring", "stop", "exit"));
  EXPECT_THAT(trace.actions(child), ElementsAre("fork", "ring", "stop", "exit"));
  EXPECT_EQ(trace.action(child, "fork")["parent"], parent);
  EXPECT_EQ(trace.action(child, "ring")["path"], ring_of(child).string());
  EXPECT_EQ(trace.action(child, "exit")["status"], Json({{"code", 5}}));
  const auto forks = lifecycle(trace, parent, "fork_parent");
  ASSERT_THAT(forks, SizeIs(1));
  EXPECT_EQ(forks[0]["value"], child);
  EXPECT_THAT(lifecycle(trace, child, "fork_child"), SizeIs(1));
  for (const pid_t pid : {parent, child}) {
    expect_all_delivered(trace, pid);
    EXPECT_GT(minor_collections(trace, pid), 0u) << pid;
  }
}

TEST_F(LifecycleLive, ExecBeginsANewImageOfTheSamePid) {
  const std::string chain = ocaml_program("exec_chain"), hello = ocaml_program("hello");
  Tracer tracer({"--sched", "off"});
  Process process(preserved("exec_chain", {chain, hello}));
  // The next program takes over the ring file: each program waits until the tracer has opened its ring.
  for (int image = 0; image < 2; ++image) {
    tracer.process().line_with(R"("action":"ring")");
    process.lines_until("ready");
    process.go();
  }
  EXPECT_EQ(run_through(process).out, "ready\nready\nhello\n");
  const Trace trace = tracer.stop();

  const pid_t pid = process.pid();
  EXPECT_THAT(trace.actions(pid),
              ElementsAre("exec", "ring", "exit", "exec", "ring", "exit", "exec", "ring", "stop", "exit"));
  Strings images;
  std::vector<Json> ends;
  for (const Json& event : trace.of(pid, "process")) {
    if (event["action"] == "exec") images.push_back(event["exe"]);
    if (event["action"] == "exit") ends.push_back(event["status"]);
  }
  const Json by_exec = {{"exec", true}};
  EXPECT_THAT(ends, ElementsAre(by_exec, by_exec, Json({{"code", 0}})));
  EXPECT_THAT(images, ElementsAre(chain, chain, hello));
  EXPECT_THAT(lifecycle(trace, pid, "ring_start"), SizeIs(3));
  EXPECT_THAT(lifecycle(trace, pid, "ring_stop"), SizeIs(1)) << "exec writes no end event";
  EXPECT_GT(minor_collections(trace, pid), 0u);
  EXPECT_EQ(trace.words(pid)["corrupt"], 0u);
}

TEST_F(LifecycleLive, ExecOfAProgramThatIsNotOcamlEndsTracing) {
  Tracer tracer({"--sched", "off"});
  Process process(with_events("exec_chain", {"/bin/sh", "-c", "exit 4"}));
  EXPECT_EQ(run_through(process).status.code(), 4);
  const Trace trace = tracer.stop();
  EXPECT_GT(minor_collections(trace, process.pid()), 0u);
  EXPECT_EQ(trace.action(process.pid(), "exit")["status"], Json({{"exec", true}}));
  EXPECT_THAT(lifecycle(trace, process.pid(), "ring_start"), SizeIs(1));
  expect_all_delivered(trace, process.pid());
}

TEST_F(LifecycleLive, ProgramsContinueAfterTheTracerEnds) {
  Process process(with_events("busy_alloc", {"2"}), "ready");
  {
    Tracer tracer({"--sched", "off"});
    process.go_until("done");
    const Trace trace = tracer.stop();
    EXPECT_THAT(trace.actions(process.pid()), ElementsAre("found", "ring"));
  }
  EXPECT_TRUE(process.running());
  EXPECT_EQ(run_through(process).status.code(), 0);
}

}  // namespace
}  // namespace rtev::test
