// SPDX-License-Identifier: MIT
// Messages of dump, convert and -i for files that they cannot read or select from, and cleaning up after a killed
// tracer.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "live/harness.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

class SourcesLive : public LiveTest {
 protected:
  /// The ring file of a program that ended.
  std::string left_ring() {
    pid_ = run_to_end(preserved("busy_alloc", {"5"}));
    return ring_of(pid_);
  }
  pid_t pid_ = 0;
};

TEST_F(SourcesLive, ForeignFilesAreErrors) {
  const std::string foreign = dir / "foreign.json", empty = dir / "empty.fxt";
  std::ofstream(foreign) << "{\"other\":[]}\n";
  std::ofstream{empty};
  for (const std::string& path : {foreign, empty}) {
    const Outcome outcome = run_tool({"dump", path});
    EXPECT_EQ(outcome.status.code(), 1);
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("cannot read " + path), HasSubstr(path == empty ? "it is empty" : "not a recording"),
                      HasSubstr("hint: give a recording")));
  }
  EXPECT_THAT(run({.argv = {"sh", "-c", "\"$0\" dump - <\"$1\"", tool(), foreign}}).err,
              HasSubstr("cannot read stdin: "));
}

TEST_F(SourcesLive, RingFileAsStdin) {
  const std::string ring = left_ring();
  const Outcome outcome = run({.argv = {"sh", "-c", "\"$0\" dump -f jsonl - <\"$1\"", tool(), ring}});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(Trace::parse(outcome.out).events, SizeIs(dumped(ring).events.size()));
}

TEST_F(SourcesLive, SelectionThatTheRingCannotMatchIsAnError) {
  const std::string ring = left_ring();
  for (const char* command : {"dump", "latency"}) {
    const Strings read = std::string(command) == "dump" ? Strings{"dump", ring} : Strings{command, "-i", ring};
    const auto with = [&](const std::string& option, const std::string& value) {
      Strings arguments = read;
      arguments.insert(arguments.end(), {option, value});
      return run_tool(arguments);
    };
    const Outcome by_name = with("-n", "*"), by_pid = with("-p", std::to_string(pid_ + 1));
    EXPECT_EQ(by_name.status.code(), 1);
    EXPECT_THAT(by_name.err, AllOf(HasSubstr(ring), HasSubstr("name of its program"), HasSubstr("hint: omit -n")));
    EXPECT_THAT(by_name.out, IsEmpty());
    EXPECT_EQ(by_pid.status.code(), 1);
    EXPECT_THAT(by_pid.err, HasSubstr("it is of process " + std::to_string(pid_)));
    const Outcome fits = with("-p", std::to_string(pid_));
    EXPECT_EQ(fits.status.code(), 0) << fits.err;
    EXPECT_THAT(fits.out, Not(IsEmpty()));
  }
}

TEST_F(SourcesLive, NameSelectsALiveProcess) {
  Process process(with_events("busy_alloc", {"5"}), "ready");
  const std::string pid = std::to_string(process.pid());
  EXPECT_EQ(run_tool({"dump", "-q", pid, "-n", "busy*"}).status.code(), 0);
  const Outcome other = run_tool({"dump", pid, "-n", "other"});
  EXPECT_EQ(other.status.code(), 1);
  EXPECT_THAT(other.err, HasSubstr("'busy_alloc', which -n does not match"));
  EXPECT_EQ(run_tool({"enable", "--dry-run", "-p", pid, "-n", "busy*"}).status.code(), 0);
  const Outcome not_enabled = run_tool({"enable", "--dry-run", "-p", pid, "-n", "other"});
  EXPECT_EQ(not_enabled.status.code(), 1);
  EXPECT_THAT(not_enabled.err, HasSubstr("no program found"));
}

TEST_F(SourcesLive, SummariesOfSelectionsCountSelectedEvents) {
  const std::string path = dir / "run.fxt", part = dir / "part.jsonl";
  ASSERT_EQ(run_tool({"record", "-q", "-o", path, "--", ocaml_program("busy_alloc"), "5"}).status.code(), 0);
  ASSERT_EQ(run_tool({"convert", "-q", "--events", "counter", path, "-o", part}).status.code(), 0);
  const Trace whole = dumped(path), counters = Trace::parse(read_file(part));
  EXPECT_EQ(counters.summary["events"]["counter"], whole.of("counter").size());
  EXPECT_EQ(counters.summary["events"]["begin"], 0);
  EXPECT_EQ(counters.summary["events"]["switch"], 0);
}

std::size_t private_dirs(const fs::path& base) {
  return static_cast<std::size_t>(std::ranges::count_if(
      fs::directory_iterator(base),
      [](const fs::directory_entry& entry) { return entry.path().filename().string().starts_with("rtev-bpf."); }));
}

TEST_F(SourcesLive, LeftoversOfAKilledTracerAreRemovedAfterItsProgramEnds) {
  const fs::path base = dir / "tmp";
  fs::create_directory(base);
  const std::map<std::string, std::string> env{{"TMPDIR", base}};
  const auto start_another = [&] {
    for (const fs::directory_entry& entry : fs::directory_iterator(base))
      fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(1));
    EXPECT_EQ(run_tool({"-q", "--", "true"}, {.argv = {}, .env = env}).status.code(), 0);
  };
  std::string program;
  {
    Tracer tracer({"-q", "-o", dir / "out.jsonl", "--", ocaml_program("killed")}, {.env = env});
    tracer.process().lines_until("ready");
    ASSERT_EQ(private_dirs(base), 1u);
    const fs::path rings = fs::directory_iterator(base)->path();
    start_another();
    ASSERT_EQ(private_dirs(base), 1u) << "the tracer runs";
    tracer.process().signal(SIGKILL);
    poll_until([&] { return !tracer.process().running(); });
    start_another();
    EXPECT_EQ(private_dirs(base), 1u) << "its program still runs";
    ASSERT_FALSE(fs::is_empty(rings));
    program = fs::directory_iterator(rings)->path().stem();
  }  // The destructor kills the process group.
  poll_until([&] { return ::kill(std::stoi(program), 0) != 0; });
  start_another();
  EXPECT_EQ(private_dirs(base), 0u);
}

}  // namespace
}  // namespace rtev::test
