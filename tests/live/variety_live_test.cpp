// SPDX-License-Identifier: MIT
// Whatever the binary: a program built in every way, by every version of OCaml at hand, found running and seen to
// start.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "live/harness.hpp"
#include "live/matrix.hpp"
#include "live/variety.hpp"

namespace rtev::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

class VarietyLive : public LiveTest {
 protected:
  void need(const Variety& variety) {
    if (std::filesystem::exists(variety.program())) return;
    const std::string obstacle =
        "no OCaml " + std::string(variety.ocaml) + " was found when the tests were built (scripts/test gets it)";
    if (std::getenv("CI") != nullptr) FAIL() << obstacle;
    GTEST_SKIP() << obstacle;
  }
  /// Leaves its ring behind.
  Command command(const Variety& variety) const {
    Command command = preserved("");
    command.argv = {variety.program()};
    return command;
  }
};

/// Returns when the tracer has told of a process, and so has looked into its program.
void wait_until_known(Tracer& tracer, pid_t pid) {
  const std::string mark = "\"pid\":" + std::to_string(pid) + ",";
  while (!tracer.process().line_with(mark).contains(R"("type":"process")")) {
  }
}

/// The line of `ps` for a process.
std::string listed(pid_t pid) {
  const Outcome ps = run_tool({"ps", "-d", "1ms", "-p", std::to_string(pid)});
  EXPECT_EQ(ps.status.code(), 0) << ps.err;
  return ps.out.substr(ps.out.find('\n') + 1);
}

class BuildLive : public VarietyLive, public ::testing::WithParamInterface<Variety> {
  void SetUp() override {
    VarietyLive::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) need(GetParam());
  }
};

TEST_P(BuildLive, EveryEventWithItsName) {
  const Variety& variety = GetParam();
  Process early(command(variety));
  early.lines_until("ready");
  Tracer tracer({"--history"});
  Process late(command(variety));
  late.lines_until("ready");
  wait_until_known(tracer, late.pid());
  const std::string version = variety.build.named ? variety.ocaml : "5.?";
  for (const pid_t pid : {early.pid(), late.pid()})
    EXPECT_THAT(listed(pid), AllOf(HasSubstr(" " + version + " "), HasSubstr(" active ")));
  const std::string early_out = run_through(early).out, late_out = run_through(late).out;
  const Trace trace = tracer.stop();

  expect_whole(trace, variety, dir.path(), early.pid(), early_out);
  expect_whole(trace, variety, dir.path(), late.pid(), late_out);
  for (const pid_t pid : {early.pid(), late.pid()}) {
    EXPECT_EQ(trace.action(pid, "ring")["path"], ring_of(pid).string());
    EXPECT_EQ(figures_of(trace, pid)["version"], variety.build.named ? Json(variety.ocaml) : Json());
  }
  covers("binary", variety.build.what, variety.ocaml);
}

/// What probes see of a run of the program, which ends with a full collection, after work in three domains.
void expect_probed(const Trace& trace, pid_t pid) {
  std::set<int> domains;
  int full_collections = 0;
  for (const Json& event : trace.from_rings(pid)) {
    EXPECT_NE(event["type"], "lost") << event;
    domains.insert(event["domain"].get<int>());
    if (event["type"] == "begin" && event["name"] == "explicit_gc_full_major") {
      ++full_collections;
      EXPECT_EQ(event["domain"], 0);
    }
  }
  EXPECT_EQ(full_collections, 1);
  // The second domain may have ended, and its number be free, when the third one begins.
  EXPECT_THAT(domains, AnyOf((std::set{0, 1, 2}), (std::set{0, 1})));
}

TEST_P(BuildLive, ByProbesWithoutARing) {
  const Variety& variety = GetParam();
  Command command = program("");
  command.argv = {variety.program()};
  Process early(command);
  early.lines_until("ready");
  EXPECT_THAT(listed(early.pid()), HasSubstr(" none "));
  Tracer tracer({"--ringless", "-n", variety.build.kind});
  Process late(command);
  run_through(early);
  run_through(late);
  const Outcome outcome = tracer.interrupt();
  const Trace trace = Trace::parse(outcome.out);
  if (!variety.build.named) {
    // Nobody knows where its functions are, but who it is.
    EXPECT_GE(trace.summary["drops"]["unprobed"], 2);
    EXPECT_THAT(outcome.err, HasSubstr("  " + variety.program().string() + " (pid "));
    covers("ringless", variety.build.what + std::string(": named as one that cannot be probed"), variety.ocaml);
    return;
  }
  EXPECT_EQ(trace.summary["drops"]["unprobed"], 0);
  expect_probed(trace, early.pid());
  expect_probed(trace, late.pid());
  EXPECT_THAT(trace.actions(early.pid()), ::testing::ElementsAre("found", "probe", "exit"));
  EXPECT_THAT(trace.actions(late.pid()), ::testing::ElementsAre("exec", "probe", "exit"));
  covers("ringless", variety.build.what, variety.ocaml);
}

INSTANTIATE_TEST_SUITE_P(All, BuildLive, ::testing::ValuesIn(all_varieties()), [](const auto& variety) {
  std::string name = variety.param.ocaml + std::string("_") + variety.param.build.kind;
  std::ranges::replace(name, '.', '_');
  return name;
});

}  // namespace
}  // namespace rtev::test
