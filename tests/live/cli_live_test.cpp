// SPDX-License-Identifier: MIT
// The command line on a live host: options, subcommands, messages, colours, exit statuses.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/unique_fd.hpp"
#include "live/harness.hpp"
#include "live/oracle.hpp"
#include "live/variety.hpp"

namespace rtev::test {
namespace {

using ::testing::MatchesRegex;

class CliLive : public LiveTest {};

std::set<int> pids_in(const Trace& trace) {
  std::set<int> pids;
  for (const Json& event : trace.events) pids.insert(event.value("pid", 0));
  return pids;
}

/// The line of a table whose first column is `pid`; empty if there is none.
std::string row_of(pid_t pid, const std::string& table) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream columns(line);
    std::string first;
    if (columns >> first && first == std::to_string(pid)) return line;
  }
  return {};
}

/// The table of all cases is in unit/cli/command_line_test.cpp.
TEST_F(CliLive, ExitStatusDependsOnTheError) {
  const struct {
    Strings arguments;
    int status;
  } cases[] = {{{"--no-such-option"}, 2}, {{"dump", dir / "missing.events"}, 1}, {{"ps", "-d", "1ms"}, 0}};
  for (const auto& expected : cases) {
    const Outcome outcome = run_tool(expected.arguments);
    EXPECT_EQ(outcome.status.code(), expected.status) << ::testing::PrintToString(expected.arguments) << outcome.err;
    EXPECT_EQ(outcome.out.empty(), expected.status != 0);
  }
}

TEST_F(CliLive, ItIsAFailureIfNothingIsSelected) {
  const Process process(with_events("busy_alloc"), "ready");
  for (const char* const word : {"", "record", "summary"}) {
    Strings none{"-d", "100ms", "-o", dir / "out", "-n", "busy_alocc"};
    if (*word != 0) none.insert(none.begin(), word);
    const Outcome outcome = run_tool(none);
    EXPECT_EQ(outcome.status.code(), 1) << word;
    EXPECT_THAT(outcome.err, HasSubstr("did you mean --name 'busy_alloc'?")) << word;
    Strings some = none;
    some.insert(some.end(), {"-n", "busy_alloc"});
    EXPECT_EQ(run_tool(some).status.code(), 0) << "one of two names matches: " << word;
  }
  EXPECT_EQ(run_tool({"latency", "-d", "1ms", "-n", "busy_alocc", "--fail-if", "p99>1h"}).status.code(), 3);
  EXPECT_THAT(run_tool({"-q", "-d", "1ms", "-n", "busy_alocc"}).err, HasSubstr("matches --name 'busy_alocc'"));
  const Outcome listed = run_tool({"ps", "-d", "1ms", "-n", "busy_alocc"});
  EXPECT_EQ(listed.status.code(), 1);
  EXPECT_THAT(listed.err, HasSubstr("did you mean --name 'busy_alloc'?"));
}

TEST_F(CliLive, ReportsSayWhetherEventsWereLost) {
  for (const char* const report : {"latency", "pauses", "stats", "summary", "stalls"}) {
    const Outcome outcome = run_tool({report, "--", program("busy_alloc").argv[0], "1"});
    EXPECT_THAT(
        outcome.err,
        ContainsRegex("events of 1 OCaml process in .*, nothing lost, nothing dropped(; [^;]* out of order)?\n$"))
        << report;
    EXPECT_THAT(run_tool({report, "-q", "--", program("busy_alloc").argv[0], "1"}).err, Not(HasSubstr("lost")))
        << report;
  }
}

/// The runtime announces a ring before it has written the header, so it is opened when later events were delivered.
TEST_F(CliLive, AnOpenedRingIsInOrder) {
  for (int run = 0; run < 5; ++run)
    for (const Json& event : Trace::parse(run_tool({"-f", "jsonl", "--", program("hello").argv[0]}).out).events)
      EXPECT_FALSE(event.value("action", "") == "ring" && event.contains("late")) << event;
}

TEST_F(CliLive, HelpAndVersionNeedNoRoot) {
  const Outcome help = run_tool({"--help"}, {.argv = {}, .user = nobody});
  EXPECT_EQ(help.status.code(), 0);
  EXPECT_THAT(help.out, HasSubstr("Usage: rtev-bpf"));
  const Outcome version = run_tool({"--version"}, {.argv = {}, .user = nobody});
  EXPECT_EQ(version.status.code(), 0);
  EXPECT_THAT(version.out, MatchesRegex("rtev-bpf [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_F(CliLive, WithoutRootItFailsWithAHint) {
  const Outcome outcome = run_tool({"-d", "1s"}, {.argv = {}, .user = nobody});
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("hint:"), HasSubstr("sudo")));
}

TEST_F(CliLive, SeveralPidsCanBeSelected) {
  Process first(with_events("busy_alloc", {"3"}), "ready"), second(with_events("domains", {"1", "1"}), "ready"),
      other(with_events("api_start"), "ready");
  Tracer tracer({"--sched", "off", "-p", std::to_string(first.pid()), "-p", std::to_string(second.pid())});
  for (Process* process : {&first, &second, &other}) run_through(*process);
  EXPECT_THAT(pids_in(tracer.stop()), UnorderedElementsAre(first.pid(), second.pid()));
}

TEST_F(CliLive, NameGlobSelectsRunningAndLaterProcesses) {
  Process before(with_events("busy_alloc", {"2"}), "ready"), other(with_events("domains", {"1", "1"}), "ready");
  Tracer tracer({"--sched", "off", "-n", "busy_*"});
  Process after(with_events("busy_alloc", {"2"}));
  for (Process* process : {&before, &other, &after}) run_through(*process);
  EXPECT_THAT(pids_in(tracer.stop()), UnorderedElementsAre(before.pid(), after.pid()));
}

/// The kernel cuts a comm at 15 bytes; that of bytecode may be the interpreter's.
TEST_F(CliLive, NamesThatAreLongerThanACommSelectAtOnce) {
  const Variety variety{.ocaml = "5.3", .build = {.kind = "bytecode", .what = ""}};
  if (!fs::exists(variety.program())) GTEST_SKIP() << "no bytecode was built";
  Command script = with_events("busy_alloc");
  script.argv = {variety.program()};
  const std::pair<Command, std::string> programs[]{{with_events("busy_alloc", {"1"}), "binarytrees_with_long_name.exe"},
                                                   {script, "batch-that-runs-at-night.byte"}};
  for (const auto& [program, name] : programs) {
    const Command command = copied(program, name);
    Process before(command, "ready");
    // It is not waited for more.
    const Outcome found = run_tool({"stats", "-d", "1ms", "-f", "json", "-n", name});
    EXPECT_EQ(found.status.code(), 0) << found.err;
    EXPECT_THAT(found.out, HasSubstr("\"pid\":" + std::to_string(before.pid()))) << name;
    EXPECT_THAT(found.err, Not(HasSubstr("matches"))) << name;
    Tracer tracer({"--sched", "off", "-n", name});
    Process after(command);
    for (Process* process : {&before, &after}) run_through(*process);
    EXPECT_THAT(pids_in(tracer.stop()), UnorderedElementsAre(before.pid(), after.pid())) << name;
  }
}

TEST_F(CliLive, DurationEndsTheRun) {
  const Outcome outcome = run_tool({"-f", "jsonl", "--sched", "off", "-d", "500ms"});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  const Trace trace = Trace::parse(outcome.out);
  EXPECT_GE(trace.summary["duration_ns"], 500'000'000);
  EXPECT_LT(trace.summary["duration_ns"], 5'000'000'000);
}

TEST_F(CliLive, FilesOfOtherUsersAreNotWritten) {
  // As in /tmp: every user may create files, but not remove those of others.
  fs::permissions(dir.path(), fs::perms(01777));
  const std::string trap = dir / "trap.jsonl";
  std::ofstream(trap) << "waiting";
  fs::permissions(trap, fs::perms(0666));
  ASSERT_EQ(::chown(trap.c_str(), nobody, nobody), 0);
  const Outcome outcome = run_tool({"-q", "-f", "jsonl", "-d", "100ms", "-o", trap});
  EXPECT_EQ(outcome.status.code(), 1);
  // Some kernels refuse earlier than rtev-bpf does (fs.protected_regular).
  EXPECT_THAT(outcome.err, AnyOf(HasSubstr("Permission denied"), HasSubstr("belongs to another user")));
  EXPECT_EQ(read_file(trap), "waiting");
}

/// In a directory such as /tmp. The cases of each kind of file are in unit/cli/output_file_test.cpp.
TEST_F(CliLive, SudoGivesNoRightsToFiles) {
  fs::permissions(dir.path(), fs::perms(01777));
  const Command sudo{.argv = {}, .env = {{"SUDO_UID", "65534"}, {"SUDO_GID", "65534"}, {"SUDO_USER", "nobody"}}};
  const std::string secret = dir / "secret", of_root = dir / "root";
  fs::create_directory(of_root);
  fs::permissions(of_root, fs::perms(0700));
  std::ofstream(secret) << "of root";
  fs::permissions(secret, fs::perms(0600));
  fs::create_symlink(secret, dir / "link");
  const std::string planted = dir / "link";
  ASSERT_EQ(::lchown(planted.c_str(), 12345, 12345), 0);
  for (const std::string& path : {secret, planted, of_root + "/new"}) {
    const Outcome outcome = run_tool({"-q", "-d", "100ms", "-f", "jsonl", "-o", path}, sudo);
    EXPECT_EQ(outcome.status.code(), 1) << path;
    EXPECT_THAT(outcome.err, HasSubstr("hint:"));
  }
  EXPECT_EQ(read_file(secret), "of root");
  EXPECT_TRUE(fs::is_empty(of_root));
  const Outcome outcome = run_tool({"dump", secret}, sudo);
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("Permission denied"), HasSubstr("rights of nobody")));
  for (const Strings& read : {Strings{"dump", planted}, {"convert", planted, "-o", "-"}, {"stats", "-i", planted}})
    EXPECT_THAT(run_tool(read, sudo).err, HasSubstr("is a symbolic link of user 12345"));
  Process program(with_events("busy_alloc"), "ready");
  EXPECT_EQ(run_tool({"dump", "-q", std::to_string(program.pid())}, sudo).status.code(), 0) << "only root may find it";
}

TEST_F(CliLive, AWindowThatMissesARingIsAnErrorAndLeavesNoFile) {
  Process program(with_events("busy_alloc"), "ready");
  const std::string pid = std::to_string(program.pid()), file = dir / "report.txt";
  for (const Strings& report : {Strings{"stats"}, {"latency"}, {"latency", "--interval", "100ms"}}) {
    Strings arguments = report;
    arguments.insert(arguments.end(), {"-i", pid, "--from", "999999", "-o", file});
    const Outcome outcome = run_tool(arguments);
    EXPECT_EQ(outcome.status.code(), 1) << report.back();
    EXPECT_THAT(outcome.err, HasSubstr("none of it in the selected time"));
    EXPECT_FALSE(fs::exists(file)) << report.back();
  }
  EXPECT_EQ(run_tool({"latency", "--interval", "100ms", "-i", pid, "-o", file}).status.code(), 0);
  EXPECT_THAT(read_file(file), HasSubstr("GC pauses of 1 process"));
}

TEST_F(CliLive, InvalidNumbersOfSudoAreErrors) {
  using Environment = std::map<std::string, std::string>;
  for (const Environment& env : {Environment{{"SUDO_UID", "1001x"}, {"SUDO_GID", "1001"}},
                                 {{"SUDO_UID", ""}, {"SUDO_GID", "1001"}},
                                 {{"SUDO_UID", "1001"}}}) {
    for (const Strings& arguments : {Strings{"-d", "100ms"}, {"dump", "/dev/null"}, {"ps"}, {"--", "true"}}) {
      const Outcome outcome = run_tool(arguments, {.argv = {}, .env = env});
      EXPECT_EQ(outcome.status.code(), 1);
      EXPECT_THAT(outcome.err, AllOf(HasSubstr("who called sudo"), HasSubstr("hint:")));
    }
  }
}

TEST_F(CliLive, FileThatAnotherProgramWritesIsRefused) {
  const std::string file = dir / "trace.fxt";
  std::ofstream(file) << "data of the other one";
  UniqueFd other(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  const Outcome outcome = run_tool({"record", "-q", "-d", "100ms", "-o", file});
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, HasSubstr("another program writes to it"));
  EXPECT_EQ(fs::file_size(file), 21u);
}

TEST_F(CliLive, EventsOptionSelectsKinds) {
  Tracer tracer({"--events", "counter,lifecycle"});
  Process process(with_events("busy_alloc", {"2"}));
  run_through(process);
  const Trace trace = tracer.stop();
  std::set<std::string> types;
  for (const Json& event : trace.events) types.insert(event["type"]);
  EXPECT_THAT(types, UnorderedElementsAre("counter", "lifecycle"));
  expect_all_delivered(trace, process.pid());  // also events that are not shown
}

TEST_F(CliLive, CtrlCReadsTheRestAndSummarises) {
  for (const bool verbose : {false, true}) {
    Tracer tracer(verbose ? Strings{"--sched", "off", "-v"} : Strings{"--sched", "off"}, {.format = {"-f", "text"}});
    Process process(with_events("busy_alloc", {"2"}));
    run_through(process);
    const Outcome outcome = tracer.interrupt();
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("minor_allocated"), HasSubstr("exit")));
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(" OCaml process"), HasSubstr("nothing lost, nothing dropped")));
    EXPECT_EQ(outcome.err.contains(std::to_string(process.pid()) + " busy_alloc"), verbose) << outcome.err;
  }
}

TEST_F(CliLive, QuietHasNoSummary) {
  const Outcome outcome = run_tool({"-q", "-f", "jsonl", "-d", "100ms"});
  EXPECT_EQ(outcome.status.code(), 0);
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST_F(CliLive, FilesAreNotTakenForClosedStreams) {
  const std::string file = dir / "closed.fxt";
  const auto with_closed = [&](const std::string& streams, const std::string& arguments) {
    return run({.argv = {"sh", "-c", "exec \"$0\" " + arguments + " -- true " + streams, tool(), file}});
  };
  for (const char* const streams : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"}) {
    EXPECT_EQ(with_closed(streams, "record --sched off -o \"$1\"").status.code(), 0) << streams;
    EXPECT_EQ(run_tool({"summary", "-i", file}).status.code(), 0) << streams;
    std::filesystem::remove(file);
  }
  const Outcome report = with_closed(">&-", "summary --sched off");
  EXPECT_EQ(report.status.code(), 1);
  EXPECT_THAT(report.err, HasSubstr("cannot write to stdout: Bad file descriptor"));
}

TEST_F(CliLive, ClosedPipeEndsTheRun) {
  const Outcome outcome = run({.argv = {"sh", "-c", "\"$0\" -f jsonl --sched all -d 1h | head -n 1", tool()}});
  EXPECT_EQ(outcome.status.code(), 0);
  EXPECT_THAT(outcome.out, StartsWith("{\"type\":\"header\""));
}

TEST_F(CliLive, TerminalsGetColours) {
  struct Case {
    const char* label;
    bool terminal;
    std::map<std::string, std::string> env;
    Strings arguments;
    bool colours;
  };
  const std::map<std::string, std::string> xterm{{"TERM", "xterm-256color"}},
      no_color{{"TERM", "xterm-256color"}, {"NO_COLOR", "1"}};
  const Case cases[] = {{"pipe", false, xterm, {}, false},
                        {"terminal", true, xterm, {}, true},
                        {"terminal, NO_COLOR", true, no_color, {}, false},
                        {"terminal, never", true, xterm, {"--color", "never"}, false},
                        {"pipe, always", false, xterm, {"--color", "always"}, true},
                        {"NO_COLOR, always", true, no_color, {"--color", "always"}, true}};
  for (const Case& expected : cases) {
    Strings arguments{"--sched", "off"};
    arguments.insert(arguments.end(), expected.arguments.begin(), expected.arguments.end());
    Tracer tracer(arguments, {.format = {"-f", "text"}, .env = expected.env, .terminal = expected.terminal});
    Process process(with_events("busy_alloc", {"1"}));
    run_through(process);
    const std::string out = tracer.interrupt().out;
    EXPECT_THAT(out, HasSubstr("minor")) << expected.label;
    EXPECT_EQ(out.contains('\x1b'), expected.colours) << expected.label;
  }
}

TEST_F(CliLive, ATerminalShowsWhatMatters) {
  // Without CMD, and with it: then a summary follows.
  const Outcome all = run({.argv = {tool(), "--all", "--", program("busy_alloc").argv[0], "1"}, .terminal = true});
  EXPECT_THAT(all.out, HasSubstr("> minor"));
  const Outcome brief = run({.argv = {tool(), "--", program("busy_alloc").argv[0], "20"}, .terminal = true});
  EXPECT_EQ(brief.status.code(), 0);
  EXPECT_THAT(brief.out, AllOf(HasSubstr("  exec  "), HasSubstr(" in all, longest "), HasSubstr("exited with code 0")));
  EXPECT_THAT(brief.out, Not(HasSubstr("> minor")));
  EXPECT_THAT(brief.err,
              AllOf(HasSubstr("GC took"), HasSubstr("half up to"), ContainsRegex("nothing lost|missing: [0-9]+ gap")));
}

TEST_F(CliLive, PsListsRunningProcesses) {
  Process active(with_events("busy_alloc"), "ready"), idle(program("api_start"), "ready");
  const Outcome outcome = run_tool({"ps"});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  const struct {
    const Process& process;
    const char *comm, *ring;
  } rows[] = {{active, "busy_alloc", "active"}, {idle, "api_start", "none"}};
  for (const auto& row : rows) {
    const std::string line = row_of(row.process.pid(), outcome.out);
    EXPECT_THAT(line,
                AllOf(HasSubstr(row.comm), HasSubstr("5.3"), HasSubstr(row.ring), HasSubstr(ocaml_program(row.comm))));
  }
  EXPECT_EQ(row_of(::getpid(), outcome.out), "") << "this test is not OCaml";
}

TEST_F(CliLive, PsTellsRatesOfThePastOrOfADuration) {
  Process process(with_events("busy_alloc"), "ready");
  process.go_until("done");
  const auto listed = [&](const Strings& options) {
    Strings arguments{"ps", "-f", "json", "-p", std::to_string(process.pid())};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return Json::parse(run_tool(arguments).out);
  };
  const Json past = listed({}), now = listed({"-d", "1ms"});
  EXPECT_EQ(past["sample_s"], 0);
  for (const char* figure : {"events_per_second", "gc_share", "heap_bytes"})
    EXPECT_GT(past["processes"][0][figure], 0) << figure;
  EXPECT_GE(past["processes"][0]["cpu_share"], 0);
  EXPECT_GT(now["sample_s"], 0);
  EXPECT_EQ(now["processes"][0]["events_per_second"], 0) << "it sleeps";
}

TEST_F(CliLive, DoctorChecksThisHost) {
  const Outcome outcome = run_tool({"doctor"});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.out << outcome.err;
  utsname host{};
  ::uname(&host);
  for (const char* text : {static_cast<const char*>(host.release), "BTF", "map_files", "uprobe_multi", "lockdown"})
    EXPECT_THAT(outcome.out, HasSubstr(text));
  EXPECT_NE(run_tool({"doctor"}, {.argv = {}, .user = nobody}).status.code(), 0) << "something is missing there";
}

}  // namespace
}  // namespace rtev::test
