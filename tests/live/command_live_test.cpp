// SPDX-License-Identifier: MIT
// rtev-bpf -- CMD: the program runs with events on as it does alone, and rtev-bpf passes on its exit status.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

class CommandLive : public LiveTest {
 protected:
  /// The command line of the tracer with the stream in a file, so that stdout is only the program's.
  Strings arguments(const Strings& command) const {
    Strings all{"-f", "jsonl", "--sched", "off", "-o", dir / "trace.jsonl", "--"};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  Outcome run_under(const Strings& command, const Command& how = {}) const { return run_tool(arguments(command), how); }
  /// The same, run by a shell that ignores a signal.
  Outcome run_ignoring(const char* signal, const Strings& command) const {
    Strings all{"sh", "-c", std::string("trap '' ") + signal + R"(; exec "$0" "$@")", tool()};
    std::ranges::move(arguments(command), std::back_inserter(all));
    return run({.argv = all});
  }
  /// The command line to start a process.
  Command under(const Strings& command) const {
    Strings all = arguments(command);
    all.insert(all.begin(), tool());
    return {.argv = all};
  }
  Trace stream() const { return Trace::parse(read_file(dir / "trace.jsonl")); }
};

TEST_F(CommandLive, ExitStatusIsThatOfTheProgram) {
  const struct {
    Strings command;
    int status;
  } cases[] = {{{"true"}, 0},
               {{"sh", "-c", "exit 3"}, 3},
               {{"sh", "-c", "exit 255"}, 255},
               {{"sh", "-c", "kill -TERM $$"}, 128 + SIGTERM},
               {{"sh", "-c", "kill -KILL $$"}, 128 + SIGKILL},
               {{ocaml_program("hello")}, 0},
               {{ocaml_program("uncaught")}, 2}};
  for (const auto& expected : cases) {
    const Outcome outcome = run_under(expected.command);
    EXPECT_EQ(outcome.status.code(), expected.status) << expected.command.back() << ": " << outcome.err;
    stream();
  }
}

TEST_F(CommandLive, ProgramThatCannotStartIsExplained) {
  const Outcome missing = run_under({"/no/such/program"});
  EXPECT_EQ(missing.status.code(), 127);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("/no/such/program"), HasSubstr("No such file")));
  EXPECT_EQ(run_under({"rtev-no-such-program"}).status.code(), 127) << "looked up in PATH";

  std::ofstream(dir / "data") << "not a program";
  const Outcome data = run_under({dir / "data"});
  EXPECT_EQ(data.status.code(), 126);
  EXPECT_THAT(data.err, HasSubstr("Permission denied"));
}

TEST_F(CommandLive, MissingProgramLeavesTheOutputFileAlone) {
  const std::string file = dir / "trace.fxt";
  std::ofstream(file) << "an earlier recording";
  EXPECT_EQ(run_tool({"record", "-o", file, "--", "rtev-no-such-program"}).status.code(), 127);
  EXPECT_EQ(read_file(file), "an earlier recording");
}

TEST_F(CommandLive, ProgramWithoutOcamlIsReported) {
  const Outcome outcome = run_under({"true"});
  EXPECT_EQ(outcome.status.code(), 0);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("OCaml"), HasSubstr("hint:")));
}

TEST_F(CommandLive, ArgumentsAndStandardStreamsAreUntouched) {
  const Strings odd{"a b", "", "\"q\" 'r'", "*", "$HOME", "--help", "-p", "--", "\\n", "é\xff", "\x1b[m"};
  Strings command{"sh", "-c", "printf '[%s]' \"$@\"; echo error >&2; exec cat", "sh"};
  command.insert(command.end(), odd.begin(), odd.end());
  Process process(under(command));
  process.write("through stdin");
  process.close_stdin();
  const Outcome outcome = process.wait();
  std::string expected;
  for (const std::string& argument : odd) expected += "[" + argument + "]";
  EXPECT_EQ(outcome.out, expected + "through stdin");
  EXPECT_THAT(outcome.err, HasSubstr("error\n"));
}

TEST_F(CommandLive, ItsOutputIsNotMixedIntoData) {
  for (const Strings& data : {Strings{"-f", "json"}, {"latency", "-f", "json"}, {"record", "-f", "json", "-o", "-"}}) {
    Strings all = data;
    for (const std::string& word : {std::string("--"), std::string("sh"), std::string("-c"),
                                    std::string("echo noise; exec \"$0\""), ocaml_program("hello")})
      all.push_back(word);
    const Outcome outcome = run_tool(all);
    std::istringstream lines(outcome.out);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) EXPECT_TRUE(Json::accept(line)) << line;
    EXPECT_GT(count, 0U);
    EXPECT_THAT(outcome.err, HasSubstr("noise\n"));
  }
}

TEST_F(CommandLive, EnvironmentIsInheritedWithEventsOn) {
  const Outcome outcome = run_under({"sh", "-c", "echo \"$KEPT\"; echo ${OCAML_RUNTIME_EVENTS_START+on}; pwd"},
                                    {.argv = {}, .env = {{"KEPT", "kept  value"}}, .directory = dir.path()});
  EXPECT_EQ(outcome.out, "kept  value\non\n" + dir.path().string() + "\n");
}

TEST_F(CommandLive, RingsThatAreToStayAreInItsDirectory) {
  const Outcome outcome = run_under(
      {ocaml_program("hello")}, {.argv = {}, .env = {{"OCAML_RUNTIME_EVENTS_PRESERVE", "1"}}, .directory = dir.path()});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  const auto files = fs::directory_iterator(dir.path());
  EXPECT_TRUE(std::ranges::any_of(files, [](const auto& file) { return file.path().extension() == ".events"; }));
}

TEST_F(CommandLive, RingDirectoryIsPrivateAndRemoved) {
  const Outcome outcome = run_under(
      {"sh", "-c", "echo \"$OCAML_RUNTIME_EVENTS_DIR\"; stat -c %a \"$OCAML_RUNTIME_EVENTS_DIR\"; exec \"$0\"",
       ocaml_program("uncaught")});
  std::istringstream lines(outcome.out);
  std::string directory, mode;
  std::getline(lines, directory);
  std::getline(lines, mode);
  EXPECT_FALSE(directory.empty());
  EXPECT_EQ(mode, "700");
  EXPECT_FALSE(fs::exists(directory)) << "although the program left its ring in it";
}

/// OCaml aborts a program whose forked child cannot create its ring, so the directory must stay.
TEST_F(CommandLive, ListsProcessesThatOutliveTheCommand) {
  const auto gate = dir / "gate";
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  const UniqueFd hold(::open(gate.c_str(), O_RDWR | O_CLOEXEC));
  const Outcome outcome =
      run_under({"sh", "-c", "setsid \"$0\" 1 gated < \"$1\" > /dev/null 2>&1 & echo \"$! $OCAML_RUNTIME_EVENTS_DIR\"",
                 ocaml_program("numbered"), gate});
  std::istringstream line(outcome.out);
  pid_t pid = 0;
  std::string directory;
  line >> pid >> directory;
  ASSERT_GT(pid, 0) << outcome.err;
  const UniqueFd program(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(": " + std::to_string(pid) + " ("), HasSubstr("hint: rtev-bpf -p PID"),
                                 HasSubstr(directory)));
  EXPECT_TRUE(fs::is_directory(directory));

  ASSERT_EQ(::write(hold.get(), "\n", 1), 1);
  pollfd ended{.fd = program.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ended, 1, 10'000), 1) << "it has not exited";
  for (const auto& left : fs::directory_iterator(directory))
    ADD_FAILURE() << "the program has not removed its ring: " << left.path();
  fs::remove_all(directory);
}

TEST_F(CommandLive, ProgramThatCannotCreateItsRingIsReported) {
  const Outcome outcome =
      run_under({"sh", "-c", "OCAML_RUNTIME_EVENTS_DIR=/no/such exec \"$0\"", ocaml_program("hello")});
  EXPECT_EQ(outcome.status.code(), 128 + SIGABRT);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("1 OCaml program aborted (SIGABRT) without a ring"),
                                 HasSubstr("set OCAML_RUNTIME_EVENTS_DIR for rtev-bpf")));
}

/// What the program writes beyond the space that there is kills it.
TEST_F(CommandLive, ProgramWhoseRingFillsItsFileSystemIsReported) {
  const fs::path rings = dir / "rings";
  fs::create_directory(rings);
  ASSERT_EQ(::mount("tmpfs", rings.c_str(), "tmpfs", 0, "size=256k"), 0) << errno;
  const Outcome outcome = run_under({ocaml_program("numbered"), "200000"},
                                    {.argv = {}, .env = {{"OCAML_RUNTIME_EVENTS_DIR", rings.string()}}});
  EXPECT_EQ(::umount2(rings.c_str(), MNT_DETACH), 0);
  EXPECT_EQ(outcome.status.code(), 128 + SIGBUS) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the file system of its ring is full: " + rings.string()));
}

/// Else it runs without a ring, or aborts.
TEST_F(CommandLive, RingsThatTheRuntimeCannotMakeAreLowered) {
  for (const char* const parameters : {"e=21", "e=22", "e=18,d=2048"}) {
    const Outcome outcome =
        run_under({ocaml_program("busy_alloc"), "1"}, {.argv = {}, .env = {{"OCAMLRUNPARAM", parameters}}});
    EXPECT_EQ(outcome.status.code(), 0) << parameters << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("too large for OCaml's runtime: they have 2^")) << parameters;
    EXPECT_THAT(stream().of("begin"), Not(IsEmpty())) << parameters;
  }
}

/// As with perf record: who wants the rest names its process.
TEST_F(CommandLive, TheTraceEndsWithTheProgramAndNamesWhatItLeaves) {
  const Outcome outcome = run_under({"sh", "-c", "sleep 600 > /dev/null 2>&1 & echo $!"});
  const pid_t left = std::stoi(outcome.out);
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("1 process started by sh is still running and no longer traced: " + std::to_string(left)),
                    HasSubstr("rtev-bpf -p PID")));
  EXPECT_EQ(::kill(left, SIGKILL), 0);
}

/// The script finds the process id of the program in the name of its ring file.
TEST_F(CommandLive, AbortOfAProgramWithARingIsNotReported) {
  const Outcome outcome =
      run_under({"sh", "-c",
                 "echo | \"$0\" | { read ready; read busy; cd \"$OCAML_RUNTIME_EVENTS_DIR\"; for ring in *.events; do "
                 "kill -ABRT \"${ring%.events}\"; done; cat > /dev/null; }",
                 ocaml_program("killed")});
  EXPECT_THAT(outcome.err, Not(HasSubstr("without a ring")));
  const Trace trace = stream();
  EXPECT_EQ(trace.summary["rings_missed"], 0);
  EXPECT_EQ(std::ranges::count_if(trace.events,
                                  [](const Json& event) {
                                    return event["type"] == "process" && event["action"] == "exit" &&
                                           event["status"].value("signal", 0) == SIGABRT;
                                  }),
            1);
}

TEST_F(CommandLive, OnlyTheProgramAndItsDescendantsAreTraced) {
  Process other(with_events("busy_alloc", {"5"}), "ready");
  Process process(under({"sh", "-c", "\"$0\"; true", ocaml_program("forker")}), "ready");
  run_through(other);
  process.close_stdin();
  const Strings lines = process.lines_until("done");
  EXPECT_EQ(process.wait().status.code(), 0);

  const Trace trace = stream();
  const int child = std::stoi(lines.back().substr(std::string("child ").size()));
  std::set<int> pids;
  for (const Json& event : trace.of("begin")) pids.insert(event["pid"].get<int>());
  EXPECT_EQ(pids.size(), 2u);
  EXPECT_TRUE(pids.contains(child));
  EXPECT_FALSE(pids.contains(other.pid()));
}

/// As with perf: the process is traced for as long as the command runs.
TEST_F(CommandLive, WithAProcessItOnlySaysHowLong) {
  Process traced(preserved("steps", {"100"}), "ready");
  Strings all = arguments({ocaml_program("busy_alloc")});
  all.insert(all.end() - 2, {"-p", std::to_string(traced.pid()), "--history"});
  all.insert(all.begin(), tool());
  Process tracer({.argv = all}, "ready");
  EXPECT_EQ(run_through(traced).status.code(), 0);
  EXPECT_TRUE(tracer.running()) << "the command goes on";
  const Outcome outcome = run_through(tracer);
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("done"));
  const Trace trace = stream();
  expect_exact(trace, dir.path(), traced.pid());
  for (const Json& event : trace.of("process")) EXPECT_EQ(event["pid"], traced.pid());
}

TEST_F(CommandLive, DeliversAllEventsOfTheProgram) {
  const Outcome outcome = run_under({ocaml_program("domains"), "3", "3"});
  EXPECT_EQ(outcome.out, "ready\ndone\n");
  const Trace trace = stream();
  const int pid = trace.of("begin").at(0)["pid"];
  EXPECT_THAT(trace.actions(pid), ElementsAre("exec", "ring", "stop", "exit"));
  expect_all_delivered(trace, pid);
  EXPECT_THAT(outcome.err, HasSubstr(" of 1 OCaml process in "));
}

TEST_F(CommandLive, RunsAsTheUserWhoCalledSudo) {
  const Command sudo{.argv = {}, .env = {{"SUDO_UID", "65534"}, {"SUDO_GID", "65534"}, {"SUDO_USER", "nobody"}}};
  ASSERT_EQ(::chown(dir.path().c_str(), nobody, nobody), 0) << "whose rights the output is opened with";
  EXPECT_EQ(run_under({"sh", "-c", "id -u; id -g"}, sudo).out, "65534\n65534\n");
  const Outcome outcome = run_under({ocaml_program("busy_alloc"), "2"}, sudo);
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(stream().of("begin"), Not(IsEmpty())) << "the user can write to the ring's directory";
}

TEST_F(CommandLive, InheritsNoDescriptorOfTheTracer) {
  const Strings list{"sh", "-c", "echo \"${RTEV_READY_FD-none}\"; exec ls /proc/self/fd"};
  std::optional<Process> process;
  start_ready(process, under(list));
  EXPECT_EQ(run_through(*process).out, run({.argv = list}).out) << "as without the tracer";
}

TEST_F(CommandLive, SignalsAreForwarded) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    Process process(under({"sh", "-c",
                           "trap 'exit 40' TERM; trap 'exit 41' INT; trap 'exit 42' HUP; "
                           "echo ready; read line; exit 9"}),
                    "ready");
    process.signal(number);
    const int expected = number == SIGTERM ? 40 : number == SIGINT ? 41 : 42;
    EXPECT_EQ(process.wait().status.code(), expected) << number;
    stream();
  }
}

TEST_F(CommandLive, RepeatedSignalsAreForwardedEachTime) {
  Process process(under({"sh", "-c",
                         "trap 'echo hup' HUP; trap 'echo usr1' USR1; trap 'echo usr2' USR2; "
                         "trap 'echo quit' QUIT; trap 'echo term' TERM; echo ready; "
                         "while [ ! -e \"$0\" ]; do sleep 0.01; done; exit 9",
                         dir / "stop"}),
                  "ready");
  const std::pair<int, const char*> sent[] = {{SIGHUP, "hup"},   {SIGTERM, "term"}, {SIGHUP, "hup"},  {SIGUSR1, "usr1"},
                                              {SIGUSR2, "usr2"}, {SIGTERM, "term"}, {SIGQUIT, "quit"}};
  for (const auto& [number, answer] : sent) {
    process.signal(number);
    EXPECT_THAT(process.lines_until(answer), IsEmpty());
  }
  std::ofstream(dir / "stop").close();
  EXPECT_EQ(process.wait().status.code(), 9);
  stream();
}

TEST_F(CommandLive, IgnoredSignalsStayIgnored) {
  // As under nohup: ignored in the tracer and in the program.
  const Outcome outcome = run_ignoring("HUP", {"sh", "-c", "kill -HUP $PPID; kill -HUP $$; echo alive; exit 7"});
  EXPECT_EQ(outcome.status.code(), 7) << outcome.err;
  EXPECT_EQ(outcome.out, "alive\n");
  stream();
}

TEST_F(CommandLive, FirstInterruptEndsACommandOfABackgroundJob) {
  // A shell without job control ignores SIGINT for what it starts in the background.
  Strings all{"sh", "-c", R"(trap '' INT; exec "$0" "$@")", tool()};
  std::ranges::move(arguments({"sh", "-c", "echo ready; exec sleep 1000"}), std::back_inserter(all));
  Process process({.argv = all}, "ready");
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().status.code(), 128 + SIGINT);
  stream();
}

TEST_F(CommandLive, ThirdRequestOfAProcessLeavesACommandThatIgnoresThem) {
  // It closes its output, whose end the test waits for.
  Process process(under({"sh", "-c",
                         "n=0; trap 'n=$((n + 1)); echo term; [ $n -lt 2 ] || exec >/dev/null 2>&1' TERM; echo $$; "
                         "while :; do sleep 0.01; done"}));
  const pid_t command = std::stoi(process.line_with(""));
  for (int i = 0; i < 2; ++i) {
    process.signal(SIGTERM);
    process.lines_until("term");
  }
  process.signal(SIGTERM);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.status.code(), 128 + SIGTERM);
  EXPECT_THAT(outcome.err, HasSubstr("(process " + std::to_string(command) + ") is still running"));
  EXPECT_EQ(::kill(command, SIGKILL), 0);
  stream();
}

TEST_F(CommandLive, ExitStatusIsKnownIfSigchldIsIgnored) {
  const Outcome outcome = run_ignoring("CHLD", {"sh", "-c", "exit 3"});
  EXPECT_EQ(outcome.status.code(), 3) << outcome.err;
  stream();
}

TEST_F(CommandLive, QuietPrintsNothing) {
  const Outcome outcome = run_tool({"-q", "-o", dir / "trace", "--", "true"});
  EXPECT_EQ(outcome.status.code(), 0);
  EXPECT_THAT(outcome.err, IsEmpty());
}

}  // namespace
}  // namespace rtev::test
