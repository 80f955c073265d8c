// SPDX-License-Identifier: MIT
// Programs whose file is deleted or replaced while they run.

#include "live/harness.hpp"
#include "live/variety.hpp"

namespace rtev::test {
namespace {

struct Change {
  const char* label;
  const char* kind;  ///< name of the build that is deleted or replaced
  const char* what;
  void (*happens)(const fs::path& program);
};

void remove_file(const fs::path& program) {
  fs::remove(program);
}

/// As package managers do: renames the new file over the old one.
void replace_file(const fs::path& program) {
  const fs::path next = program.string() + ".new";
  fs::copy_file(ocaml_program("hello"), next);
  fs::rename(next, program);
}

class ReplacedLive : public LiveTest, public ::testing::WithParamInterface<Change> {};

TEST_P(ReplacedLive, DeliversAllEvents) {
  const Change& change = GetParam();
  const Variety variety{"5.3", {.kind = change.kind, .what = change.what}};
  const auto start = [&](const fs::path& program) {
    fs::copy_file(variety.program(), program);
    Command command = preserved("");
    command.argv = {program};
    return command;
  };
  const fs::path early_program = dir / "early", late_program = dir / "late";
  Process early(start(early_program), "ready");
  change.happens(early_program);
  Tracer tracer({"--history"});
  Process late(start(late_program), "ready");
  change.happens(late_program);
  const std::string early_out = run_through(early).out, late_out = run_through(late).out;
  const Trace trace = tracer.stop();

  expect_whole(trace, variety, dir.path(), early.pid(), early_out);
  expect_whole(trace, variety, dir.path(), late.pid(), late_out);
  const Json found = trace.action(early.pid(), "found"), started = trace.action(late.pid(), "exec");
  for (const pid_t pid : {early.pid(), late.pid()}) EXPECT_EQ(trace.process(pid)["version"], "5.3");
  EXPECT_THAT(found["exe"].get<std::string>(), StartsWith(early_program.string()));
  EXPECT_EQ(started["exe"], late_program.string());
  covers("binary", change.what, variety.ocaml);
}

INSTANTIATE_TEST_SUITE_P(All, ReplacedLive,
                         ::testing::Values(Change{"Deleted", "native", "deleted while it runs", remove_file},
                                           Change{"Replaced", "native", "replaced while it runs", replace_file},
                                           Change{"StaticDeleted", "static", "fully static, deleted while it runs",
                                                  remove_file}),
                         by_label);

}  // namespace
}  // namespace rtev::test
