// SPDX-License-Identifier: MIT
// What latency, pauses and stats have in common: help, errors, input, how a run ends.
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "live/analysis_fixture.hpp"

namespace rtev::test {
namespace {

class EachAnalysis : public AnalysisLive, public ::testing::WithParamInterface<const char*> {
 protected:
  static std::string name() { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Live, EachAnalysis, ::testing::Values("latency", "pauses", "stats"), by_label);

TEST_P(EachAnalysis, CtrlCPrintsTheReport) {
  for (const char* format : {"text", "json"}) {
    SCOPED_TRACE(format);
    Tracer tracer({}, analysis(name(), format));
    Process process(with_events("busy_alloc", {"30"}), "ready");
    process.go_until("done");
    const Outcome outcome = tracer.interrupt();
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("busy_alloc"), HasSubstr(std::to_string(process.pid()))));
    EXPECT_EQ(outcome.out.back(), '\n');
    if (format == std::string("json")) {
      EXPECT_EQ(json_lines(outcome.out).size(), 1u);
    }
    EXPECT_THAT(outcome.err, HasSubstr("Ctrl-C")) << "messages go to stderr";
  }
}

TEST_P(EachAnalysis, DurationEndsTheRunAndPrintsTheReport) {
  Process process(with_events("killed"), "ready");
  process.go_until("busy");
  const Json result = report({name(), "-q", "-d", "300ms", "-p", std::to_string(process.pid())});
  EXPECT_THAT(result.dump(), HasSubstr("\"killed\""));
}

TEST_P(EachAnalysis, ExitStatusIsThatOfTheProgram) {
  const struct {
    Strings program;
    int status;
  } cases[] = {{{ocaml_program("hello")}, 0},
               {{ocaml_program("uncaught")}, 2},
               {{"sh", "-c", "exit 3"}, 3},
               {{"sh", "-c", "kill -TERM $$"}, 128 + SIGTERM}};
  for (const auto& expected : cases) {
    const Followed followed = report_of({name()}, expected.program);
    EXPECT_EQ(followed.status.code(), expected.status) << expected.program.front();
  }
  EXPECT_EQ(run_tool({name(), "--", "/no/such/program"}).status.code(), 127);
}

TEST_P(EachAnalysis, ClosedOutputIsNotAnError) {
  const std::string path = record("run.fxt", {ocaml_program("busy_alloc"), "5"}).path, gate = dir / "gate";
  // The analysis starts after the reader of its output has gone.
  const char* script =
      "mkfifo \"$3\"; { read go <\"$3\"; \"$0\" \"$1\" -i \"$2\"; echo \"status $?\" >&2; } | "
      "{ exec <&-; echo >\"$3\"; }";
  const Outcome outcome = run({.argv = {"sh", "-c", script, tool(), name(), path, gate}});
  EXPECT_EQ(outcome.err, "status " + std::to_string(128 + SIGPIPE) + "\n");
}

TEST_P(EachAnalysis, FullDiskIsAnErrorThatNamesTheFile) {
  const std::string path = record("run.fxt", {ocaml_program("busy_alloc"), "5"}).path;
  const Outcome outcome = run_tool({name(), "-i", path, "-o", "/dev/full"});
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
}

TEST_P(EachAnalysis, ReadsRecordingsFromStdin) {
  const std::string path = record("run.fxt", {ocaml_program("busy_alloc"), "5"}).path;
  const Outcome piped = run({.argv = {"sh", "-c", "\"$0\" \"$1\" -f json -i - <\"$2\"", tool(), name(), path}});
  EXPECT_EQ(piped.status.code(), 0) << piped.err;
  EXPECT_EQ(piped.out, run_tool({name(), "-f", "json", "-i", path}).out);
}

TEST_P(EachAnalysis, SelectsFromRecordings) {
  Process first(with_events("busy_alloc", {"3"}), "ready"), second(with_events("domains", {"1", "1"}), "ready");
  const std::string path = dir / "two.fxt";
  Tracer tracer({"-o", path}, {.format = {"record"}});
  run_through(first);
  run_through(second);
  tracer.interrupt();
  const std::string both = report({name(), "-i", path}).dump();
  EXPECT_THAT(both, AllOf(HasSubstr("\"busy_alloc\""), HasSubstr("\"domains\"")));
  for (const Strings& choice : {Strings{"-p", std::to_string(first.pid())}, Strings{"-n", "busy*"}}) {
    const std::string one = report({name(), "-i", path, choice[0], choice[1]}).dump();
    EXPECT_THAT(one, HasSubstr("\"comm\":\"busy_alloc\""));
    EXPECT_THAT(one, Not(HasSubstr("\"comm\":\"domains\"")));
  }
}

TEST_P(EachAnalysis, ReadsRingFilesWithoutTracing) {
  Process process(preserved("busy_alloc", {"5"}), "ready");
  process.go_until("done");
  const Json live = report({name(), "-q", "-i", std::to_string(process.pid())});
  run_through(process);
  const Json left = report({name(), "-q", "-i", ring_of(process.pid())});
  for (const Json* result : {&live, &left})
    EXPECT_THAT(result->dump(), HasSubstr("\"pid\":" + std::to_string(process.pid())));
}

TEST_F(AnalysisLive, SummaryIsTheThreeReports) {
  const std::string path = record("run.fxt", {ocaml_program("collections"), "30", "5", "2", "2"}).path;
  const Strings kinds{"stats", "latency", "pauses"};
  const std::vector<Json> together = reports({"summary", "-i", path});
  ASSERT_EQ(together.size(), kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(together[i], report({kinds[i], "-i", path}));
  const Outcome outcome = run_tool({"summary", "-i", path});
  EXPECT_EQ(outcome.status.code(), 0);
  // On a busy host an event may come late, which takes a line.
  const std::ptrdiff_t max_lines = outcome.out.contains("out of order") ? 24 : 23;
  EXPECT_LE(std::ranges::count(outcome.out, '\n'), max_lines) << outcome.out;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr(": GC took "), HasSubstr("GC pauses of collections/"), HasSubstr(" × "),
                                 HasSubstr("rtev-bpf dump " + path + " --from ")));
}

}  // namespace
}  // namespace rtev::test
