// SPDX-License-Identifier: MIT
// Programs whose file is deleted or replaced while they run, or lies in no folder.
#include <fcntl.h>
#include <sys/mman.h>

#include <fstream>

#include "live/harness.hpp"
#include "live/oracle.hpp"
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

class MemfdLive : public LiveTest {};

TEST_F(MemfdLive, DeliversAllEvents) {
  UniqueFd written(::memfd_create("program", MFD_CLOEXEC));
  const auto path = [](const UniqueFd& file) { return "/proc/self/fd/" + std::to_string(file.get()); };
  std::ofstream(path(written), std::ios::binary) << std::ifstream(ocaml_program("ends"), std::ios::binary).rdbuf();
  const UniqueFd program(::open(path(written).c_str(), O_RDONLY | O_CLOEXEC));
  written.reset();  // or it could not be run
  Command command = preserved("ends", {"wait"});
  command.argv[0] = path(program);
  command.keep_fd = program.get();

  Process early(command, "ready");
  Tracer tracer({"--history"});
  Process late(command, "ready");
  for (Process* const process : {&early, &late}) run_through(*process);
  const Trace trace = tracer.stop();
  for (const pid_t pid : {early.pid(), late.pid()}) expect_exact(trace, dir.path(), pid);
  // The other one may end before its file is read.
  EXPECT_EQ(trace.process(early.pid())["version"], "5.3");
  covers("binary", "in no folder (memfd_create)");
}

INSTANTIATE_TEST_SUITE_P(All, ReplacedLive,
                         ::testing::Values(Change{"Deleted", "native", "deleted while it runs", remove_file},
                                           Change{"Replaced", "native", "replaced while it runs", replace_file},
                                           Change{"StaticDeleted", "static", "fully static, deleted while it runs",
                                                  remove_file}),
                         by_label);

}  // namespace
}  // namespace rtev::test
