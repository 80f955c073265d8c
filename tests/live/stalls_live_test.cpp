// SPDX-License-Identifier: MIT
// `rtev-bpf stalls` of a real event loop.
#include "live/analysis_fixture.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr;

using StallsLive = AnalysisLive;

TEST_F(StallsLive, ComputingAndBlockingAreDistinguished) {
  const auto [path, out] = record("run.fxt", {ocaml_program("evloop"), "120"});
  const Json all = report({"stalls", "-i", path});
  ASSERT_EQ(all["programs"].size(), 1u) << all;
  const Json& program = all["programs"][0];
  EXPECT_EQ(program["comm"], "evloop");
  EXPECT_EQ(program["call"], "select");
  const int turns = program["turns"]["count"].get<int>() + program["unknown_turns"].get<int>();
  EXPECT_LE(turns, 119);
  EXPECT_GT(turns, 100) << "before its ring is found, threads are not traced";
  int computed = 0, read = 0;
  for (const Json& stall : program["stalls"]) {
    std::uint64_t sum = 0;
    for (const auto& [part, ns] : stall["time_ns"].items()) sum += ns.get<std::uint64_t>();
    EXPECT_EQ(sum, stall["duration_ns"]);
    if (stall["time_ns"]["code"].get<std::uint64_t>() > 190'000'000) {
      EXPECT_EQ(stall["span"], "rebuild");
      ++computed;
    } else if (stall["blocked_in"] == "read" && stall["blocked_in_ns"].get<std::uint64_t>() > 150'000'000) {
      ++read;
    }
  }
  // A turn in which the scheduler's events contradict each other is of unknown length.
  const int unknown = program["unknown_turns"].get<int>();
  EXPECT_GT(computed, 0) << program;
  EXPECT_GT(read, 0) << program;
  EXPECT_LE(computed, 3) << program;
  EXPECT_LE(read, 2) << "that of the last turn is not over when the program ends: " << program;
  EXPECT_GE(computed + read + unknown, 5) << program;
  EXPECT_THAT(run_tool({"stalls", "-i", path}).out, HasSubstr("blocked in read"));
  EXPECT_THAT(run_tool({"dump", "-q", path}).out, HasSubstr("sleeping in select"));

  const Outcome limited = run_tool({"stalls", "-i", path, "--fail-if", "max>100ms"});
  EXPECT_EQ(limited.status.code(), 3);
  EXPECT_THAT(limited.err, HasSubstr("max of the stalls of evloop/"));
}

TEST_F(StallsLive, AProgramWithoutALoopHasNone) {
  const Outcome outcome = run_tool({"stalls", "--", ocaml_program("requests"), "1"});
  EXPECT_EQ(outcome.status.code(), 0);
  EXPECT_THAT(outcome.out, HasSubstr("no thread has an event loop"));
}

}  // namespace
}  // namespace rtev::test
