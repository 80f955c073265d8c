// SPDX-License-Identifier: MIT
// `rtev-bpf tasks` of a program that writes the events of Eio, and the tracks of its fibers.
#include "live/analysis_fixture.hpp"
#include "support/files.hpp"
#include "support/perfetto_check.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr;

using TasksLive = AnalysisLive;

TEST_F(TasksLive, AStarvedFiberIsFound) {
  const auto [path, out] = record("fibers.fxt", {ocaml_program("fibers")});
  const Json all = report({"tasks", "-i", path});
  ASSERT_EQ(all["programs"].size(), 1u) << all;
  const Json& program = all["programs"][0];
  EXPECT_EQ(program["comm"], "fibers");
  EXPECT_EQ(program["library"], "eio");
  EXPECT_EQ(program["created"], 5);
  EXPECT_EQ(program["finished"], 2);
  EXPECT_EQ(program["failed"], 1);
  EXPECT_EQ(program["cancelled"], 1);
  EXPECT_EQ(program["suspended"], 1);
  const Json& run = program["longest"].at(0);
  EXPECT_EQ(run["task"]["name"], "worker");
  EXPECT_GE(run["duration_ns"], 300'000'000);
  std::uint64_t sum = 0;
  for (const auto& [part, ns] : run["time_ns"].items()) sum += ns.get<std::uint64_t>();
  EXPECT_EQ(sum, run["duration_ns"]);
  EXPECT_GT(run["pauses"], 0);
  // The waiter could run since its promise was resolved, in the middle; the ticker would have run every 5 ms.
  ASSERT_EQ(run["waits"].size(), 2u) << run;
  EXPECT_EQ(run["waits"][0]["task"]["id"], 4);
  EXPECT_EQ(run["waits"][0]["certain"], true);
  EXPECT_GE(run["waits"][0]["ns"], 150'000'000);
  EXPECT_EQ(run["waits"][1]["task"]["name"], "ticker");
  EXPECT_EQ(run["waits"][1]["operation"], "sleep");
  EXPECT_GE(run["waits"][1]["ns"], 290'000'000);
  EXPECT_EQ(program["failures"].at(0)["error"], "Failure(\"no more\")");

  const std::string text = run_tool({"tasks", "-i", path}).out;
  EXPECT_THAT(text, HasSubstr("fiber 3 \"worker\" on domain 0"));
  EXPECT_THAT(text, HasSubstr("fiber 2 \"ticker\" up to 3"));
  const Outcome limited = run_tool({"tasks", "-i", path, "--fail-if", "max>100ms"});
  EXPECT_EQ(limited.status.code(), 3);
  EXPECT_THAT(limited.err, HasSubstr("max of the runs of tasks of fibers/"));
}

TEST_F(TasksLive, FibersHaveTracks) {
  const auto [path, out] = record("fibers.pftrace", {ocaml_program("fibers")});
  const PerfettoTrace trace = read_perfetto(read_file(path));
  EXPECT_EQ(trace.all_errors(), "");
  const PerfettoTrack& worker = trace.track("fiber 3 \"worker\"");
  EXPECT_EQ(trace.tracks.at(worker.parent).name, "tasks");
  ASSERT_EQ(worker.slices.size(), 5u);
  EXPECT_EQ(worker.slices[0].name, "runnable");
  EXPECT_EQ(worker.slices[0].details.at("context"), "switch 101 \"server\" in root 100");
  EXPECT_EQ(worker.slices[0].details.at("creator"), "1");
  EXPECT_EQ(worker.slices[1].flows_in.size(), 1u);
  EXPECT_EQ(worker.slices[2].name, "read");
  EXPECT_EQ(worker.slices[3].name, "domain 0");
  EXPECT_GE(worker.slices[3].end - worker.slices[3].time, 300'000'000u);
  EXPECT_EQ(trace.track("fiber 5 of \"server\"").instants.at(0).name, "failed");
}

TEST_F(TasksLive, AProgramWithoutTasksHasNone) {
  const Outcome outcome = run_tool({"tasks", "--", ocaml_program("requests"), "1"});
  EXPECT_EQ(outcome.status.code(), 0);
  EXPECT_THAT(outcome.out, HasSubstr("no task was seen"));
}

}  // namespace
}  // namespace rtev::test
