// SPDX-License-Identifier: MIT
// `rtev-bpf diff` of recordings of a real program: a change so large that it is always found, and none where there is
// none.
#include "live/analysis_fixture.hpp"

namespace rtev::test {
namespace {

using testing::HasSubstr;

using DiffLive = AnalysisLive;

/// The figure with this id; an empty object if there is none.
Json figure_in(const Json& program, const std::string& id) {
  for (const Json& figure : program["figures"])
    if (figure["id"] == id) return figure;
  return Json::object();
}

TEST_F(DiffLive, ARegressionIsFoundAndNamed) {
  const std::string server = ocaml_program("server");
  const std::string before = record("before.fxt", {server, "3000", "100", "0"}).path;
  const std::string after = record("after.fxt", {server, "3000", "400", "10"}).path;
  const Json found = report({"diff", before, after});
  ASSERT_EQ(found["programs"].size(), 1u) << found;
  const Json& program = found["programs"][0];
  EXPECT_THAT(program["verdict"], testing::AnyOf("worse", "mixed")) << program;
  EXPECT_TRUE(found["regression"].is_string());
  const Json calls = figure_in(program, "calls_full_major");
  EXPECT_EQ(calls["verdict"], "worse") << calls;
  EXPECT_EQ(calls["a"], 0);
  EXPECT_NEAR(calls["b"].get<double>(), 50, 25);
  const Json allocated = figure_in(program, "allocated");
  EXPECT_EQ(allocated["verdict"], "worse") << allocated;
  EXPECT_GT(allocated["ratio"].get<double>(), 2.5);
  // Other load of the host may add changes, but no greater ones.
  for (const Json& figure : program["figures"]) {
    if (figure["role"] != "cause") continue;
    EXPECT_EQ(figure["id"], "calls_full_major");
    break;
  }

  const Outcome failing = run_tool({"diff", before, after, "--fail-on-regression", "-n", "serv*"});
  EXPECT_EQ(failing.status.code(), 3);
  EXPECT_THAT(failing.err, HasSubstr("(--fail-on-regression)"));
  EXPECT_THAT(failing.out, HasSubstr("calls of Gc.full_major"));
  EXPECT_EQ(run_tool({"diff", before, before, "--fail-on-regression"}).status.code(), 0);
}

TEST_F(DiffLive, TheSameProgramDoesTheSame) {
  const std::string server = ocaml_program("server");
  const std::string first = record("first.fxt", {server, "3000", "100", "0"}).path;
  const std::string second = record("second.fxt", {server, "3000", "100", "0"}).path;
  const Json found = report({"diff", first, second});
  ASSERT_EQ(found["programs"].size(), 1u) << found;
  const Json& program = found["programs"][0];
  // What other load of the host changes is not asked for.
  for (const char* const id : {"allocated", "promoted_share", "minor_collections", "calls_full_major"})
    EXPECT_EQ(figure_in(program, id).value("verdict", "same"), "same") << figure_in(program, id);
  EXPECT_TRUE(program["settings"].empty()) << program["settings"];
}

TEST_F(DiffLive, OnlyRecordingsAreCompared) {
  const std::string recording = record("hello.fxt", {ocaml_program("hello")}).path;
  const Outcome missing = run_tool({"diff", recording, dir / "missing.fxt"});
  EXPECT_EQ(missing.status.code(), 1);
  EXPECT_THAT(missing.err, HasSubstr("missing.fxt"));
  const Outcome other = run_tool({"diff", recording, ocaml_program("hello")});
  EXPECT_EQ(other.status.code(), 1);
  EXPECT_THAT(other.err, HasSubstr("it is not a recording"));
  const Outcome twice = run_tool({"diff", "-", "-"});
  EXPECT_EQ(twice.status.code(), 1);
  const Outcome short_run = run_tool({"diff", recording, recording, "--fail-on-regression"});
  EXPECT_EQ(short_run.status.code(), 3) << short_run.out;
  EXPECT_THAT(short_run.out, HasSubstr("not compared"));
}

}  // namespace
}  // namespace rtev::test
