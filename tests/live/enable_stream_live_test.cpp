// SPDX-License-Identifier: MIT
// --enable of the tracer: programs that run with events off are switched on, and paused at the end.

#include <linux/sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "live/harness.hpp"
#include "live/variety.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

/// Waits until `ps` says this of a process.
void await_ps(pid_t pid, const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + wait_timeout;
  while (!ps_line(pid).contains(text)) ASSERT_LT(std::chrono::steady_clock::now(), deadline) << ps_line(pid);
}

class EnableStreamLive : public LiveTest {
 protected:
  /// A program that works until its events are on, writes user events, and works again after a gate; with "await" not
  /// before its events are on again.
  Command awaiting(const char* ocaml = "5.3", const char* kind = "native", const char* again = "again") const {
    const Variety variety{.ocaml = ocaml, .build = {.kind = kind, .what = kind}};
    return {.argv = {variety.program(), "await", again}, .env = {{"OCAML_RUNTIME_EVENTS_DIR", dir.path()}}};
  }
  /// Waits until the events of a program are on and it has written its user events.
  static void await_work(Process& process) {
    EXPECT_EQ(process.line_with("wrote "), "wrote 303");
    process.lines_until("done");
  }
  /// Lets it work again, after the end of the trace.
  static void expect_unharmed(Process& process) {
    const Outcome outcome = run_through(process);
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("done\nwrote 303\n"));
  }
  static Json enabled(const Trace& trace, pid_t pid) { return trace.action(pid, "enable"); }
};

TEST_F(EnableStreamLive, TenProgramsOfThreeVersions) {
  constexpr std::array programs = std::to_array<std::pair<const char*, const char*>>({
      {"5.1", "native"},
      {"5.1", "native"},
      {"5.1", "no_pie"},
      {"5.3", "native"},
      {"5.3", "native"},
      {"5.3", "static"},
      {"5.3", "bytecode"},
      {"5.4", "native"},
      {"5.4", "native"},
      {"5.4", "custom"},
  });
  for (const auto& [ocaml, kind] : programs) {
    if (!fs::exists(awaiting(ocaml, kind).argv.front())) GTEST_SKIP() << "no OCaml " << ocaml;
  }
  covers("enable", "`--enable`: ten programs of three versions at once");
  std::deque<Process> processes;
  for (const auto& [ocaml, kind] : programs) processes.emplace_back(awaiting(ocaml, kind), "ready");
  for (Process& process : processes) process.go();
  Tracer tracer({"--enable"});
  for (Process& process : processes) await_work(process);
  const Trace trace = tracer.stop();
  for (Process& process : processes) {
    const Json event = enabled(trace, process.pid());
    EXPECT_EQ(event.value("result", ""), "done") << event;
    EXPECT_EQ(trace.of(process.pid(), "user").size(), 303u);
    EXPECT_THAT(ps_line(process.pid()), HasSubstr(" none - "));
    EXPECT_FALSE(fs::exists(ring_of(process.pid())));
    expect_unharmed(process);
    EXPECT_FALSE(fs::exists(ring_of(process.pid())));
  }
}

TEST_F(EnableStreamLive, ProgramsThatStartLater) {
  covers("enable", "`--enable`: programs that start during the trace");
  Tracer tracer({"--enable"});
  Process process(awaiting(), "ready");
  process.go();
  await_work(process);
  const Trace trace = tracer.stop();
  EXPECT_THAT(trace.actions(process.pid()), IsSupersetOf({"exec", "enable", "ring"}));
  expect_unharmed(process);
}

TEST_F(EnableStreamLive, SwitchedOnByTheNextRun) {
  covers("enable", "`--enable`: off at the end, on again with the next run");
  Process process(awaiting("5.3", "native", "await"), "ready");
  process.go();
  {
    Tracer tracer({"--enable"});
    await_work(process);
    tracer.stop();
  }
  Tracer tracer({"--enable", "-p", std::to_string(process.pid())});
  process.go();
  process.line_with("wrote ");
  process.lines_until("again");  // an answer after the end of a program is not in the stream
  const Trace trace = tracer.stop();
  EXPECT_EQ(enabled(trace, process.pid()).value("result", ""), "done");
  EXPECT_EQ(trace.of(process.pid(), "user").size(), 303u);
  expect_unharmed(process);
}

TEST_F(EnableStreamLive, AProgramThatExecutesItself) {
  covers("enable", "`--enable`: a program that executes itself is switched on again, and leaves no file");
  Process process(awaiting("5.3", "native", "exec"), "ready");
  Tracer tracer({"--enable", "-p", std::to_string(process.pid())});
  process.go();
  await_work(process);
  process.go();
  process.line_with("ready");
  process.go();
  await_work(process);
  const Trace trace = tracer.stop();
  EXPECT_THAT(trace.actions(process.pid()), IsSupersetOf({"enable", "exec", "enable"}));
  EXPECT_EQ(trace.of(process.pid(), "user").size(), 2 * 303u);
  EXPECT_FALSE(fs::exists(ring_of(process.pid())));
  expect_unharmed(process);
}

TEST_F(EnableStreamLive, TheRingOfAProgramThatExecutesItselfMayHaveToStay) {
  Command command = awaiting("5.3", "native", "exec");
  command.env["OCAML_RUNTIME_EVENTS_PRESERVE"] = "1";
  Process process(command, "ready");
  const std::string pid = std::to_string(process.pid());
  process.go();
  EXPECT_EQ(run_tool({"enable", "-p", pid}).status.code(), 0);
  await_work(process);
  const std::string ring = ring_of(process.pid());
  process.go();
  process.line_with("ready");
  process.go();
  const Outcome refused = run_tool({"enable", "-p", pid});
  EXPECT_EQ(refused.status.code(), 1);
  EXPECT_THAT(refused.err, HasSubstr("there is a file of that name"));
  EXPECT_TRUE(fs::exists(ring));
}

TEST_F(EnableStreamLive, WhoseRingStaysIsResumed) {
  covers("enable", "`--enable` of a program whose ring is to be preserved: paused at the end, resumed by the next run");
  Command command = awaiting();
  command.env["OCAML_RUNTIME_EVENTS_PRESERVE"] = "1";
  Process process(command, "ready");
  process.go();
  {
    Tracer tracer({"--enable"});
    await_work(process);
    tracer.stop();
  }
  EXPECT_TRUE(fs::exists(ring_of(process.pid())));
  Tracer tracer({"--enable", "-p", std::to_string(process.pid())});
  expect_unharmed(process);
  const Trace trace = tracer.stop();
  EXPECT_EQ(enabled(trace, process.pid()).value("result", ""), "resumed");
  EXPECT_EQ(trace.of(process.pid(), "user").size(), 303u);
  EXPECT_TRUE(fs::exists(ring_of(process.pid())));
}

TEST_F(EnableStreamLive, ForkedChildren) {
  covers("enable", "`--enable`: children that are forked during the trace, traced or not, and after it");
  for (const bool traces_all : {true, false}) {
    Process process(program("family"), "ready");
    process.go();
    Tracer tracer(traces_all ? Strings{"--enable"} : Strings{"--enable", "-p", std::to_string(process.pid())});
    const auto next_child = [&] { return std::stoi(process.line_with("child ").substr(sizeof "child " - 1)); };
    const pid_t child = next_child();
    await_ps(child, traces_all ? " active yes " : " active ");
    tracer.stop();
    for (const pid_t pid : {process.pid(), child}) {
      EXPECT_THAT(ps_line(pid), HasSubstr(" none ")) << "pid " << pid;
      EXPECT_FALSE(fs::exists(ring_of(pid))) << "pid " << pid;
    }
    process.go();
    const pid_t later = next_child();
    EXPECT_FALSE(fs::exists(ring_of(later)));
    EXPECT_THAT(ps_line(later), HasSubstr(" none "));
    EXPECT_EQ(run_through(process).status.code(), 0);
  }
}

TEST_F(EnableStreamLive, LeftOn) {
  covers("enable", "`--enable --leave-on`");
  Process process(awaiting(), "ready");
  process.go();
  Tracer tracer({"--enable", "--leave-on"});
  await_work(process);
  tracer.stop();
  EXPECT_THAT(ps_line(process.pid()), HasSubstr(" active yes "));
  expect_unharmed(process);
}

TEST_F(EnableStreamLive, OwnPausesAreKept) {
  covers("enable", "`--enable`: a program that paused its events itself");
  Command command = awaiting();
  command.env["OCAML_RUNTIME_EVENTS_START"] = "1";
  Process process(command, "ready");
  process.go();
  await_work(process);
  ASSERT_EQ(run_tool({"disable", "-p", std::to_string(process.pid())}).status.code(), 0);
  Tracer tracer({"--enable"});
  expect_unharmed(process);
  const Trace trace = tracer.stop();
  EXPECT_EQ(enabled(trace, process.pid()).value("result", ""), "own pause");
  EXPECT_THAT(trace.of(process.pid(), "user"), IsEmpty());
}

TEST_F(EnableStreamLive, ASleepingProgramIsNamedAtTheEnd) {
  covers("enable", "`--enable`: asleep");
  Process process(awaiting(), "ready");
  Tracer tracer({"--enable", "-p", std::to_string(process.pid())});
  EXPECT_THAT(tracer.interrupt().err, HasSubstr("the events of process " + std::to_string(process.pid()) +
                                                " could not be switched on in time"));
  EXPECT_FALSE(fs::exists(ring_of(process.pid())));
}

TEST_F(EnableStreamLive, OnlySelectedPrograms) {
  covers("enable", "`--enable -p`");
  Process selected(awaiting(), "ready"), other(awaiting(), "ready");
  selected.go();
  other.go();
  Tracer tracer({"--enable", "-p", std::to_string(selected.pid())});
  await_work(selected);
  const Trace trace = tracer.stop();
  EXPECT_THAT(trace.of(other.pid(), "process"), IsEmpty());
  EXPECT_THAT(ps_line(other.pid()), HasSubstr(" none "));
  expect_unharmed(selected);
}

TEST_F(EnableStreamLive, ProbedIfItCannotBeEnabled) {
  covers("enable", "`--enable --ringless`: probes for those that cannot be switched on");
  Command command = program("busy_alloc", {"2000"});
  command.env["OCAML_RUNTIME_EVENTS_DIR"] = "/proc";  // no files can be made there
  Process process(command, "ready"), enabled_process(awaiting(), "ready");
  enabled_process.go();
  Tracer tracer({"--enable", "--ringless"});
  process.go();
  process.lines_until("done");
  await_work(enabled_process);
  const Outcome outcome = tracer.interrupt();
  const Trace trace = Trace::parse(outcome.out);
  EXPECT_EQ(enabled(trace, process.pid()).value("result", ""), "directory");
  EXPECT_THAT(outcome.err, HasSubstr("could not be switched on"));
  EXPECT_THAT(trace.actions(process.pid()), Contains("probe"));
  EXPECT_THAT(trace.actions(enabled_process.pid()), Not(Contains("probe")));
  EXPECT_FALSE(trace.of(process.pid(), "begin").empty());
  EXPECT_EQ(run_through(process).status.code(), 0);
  expect_unharmed(enabled_process);
}

TEST_F(EnableStreamLive, RecordedAndReplayed) {
  covers("enable", "`record --enable`, replayed and exported");
  const fs::path recording = dir / "trace.fxt";
  Process process(awaiting(), "ready");
  process.go();
  Tracer tracer({"--enable", "-o", recording}, {.format = {"record"}});
  await_work(process);
  tracer.interrupt();
  EXPECT_EQ(enabled(dumped(recording), process.pid()).value("result", ""), "done");
  EXPECT_THAT(run_tool({"dump", recording}).out, HasSubstr("process enable: events on"));
  const fs::path chrome = dir / "trace.json";
  convert(recording, chrome);
  EXPECT_THAT(read_file(chrome), HasSubstr("\"enable\""));
  expect_unharmed(process);
}

TEST_F(EnableStreamLive, AKilledWorkerIsReplaced) {
  covers("enable", "`--enable`: SIGKILL of the worker of the enabler");
  Process process(awaiting(), "ready"), sleeping(awaiting(), "ready");
  process.go();
  Tracer tracer({"--enable", "-p", std::to_string(process.pid()), "-p", std::to_string(sleeping.pid())});
  await_work(process);
  const auto enablers = children_named(tracer.process().pid(), "rtev-enabler");
  ASSERT_THAT(enablers, SizeIs(1));
  const auto workers = children_named(enablers.front(), "rtev-enabler");
  ASSERT_THAT(workers, SizeIs(1));
  ::kill(workers.front(), SIGKILL);
  sleeping.go();
  await_work(sleeping);
  EXPECT_THAT(ps_line(process.pid()), HasSubstr(" active "));
  const Trace trace = tracer.stop();
  for (Process* each : {&process, &sleeping}) {
    EXPECT_EQ(enabled(trace, each->pid()).value("result", ""), "done");
    EXPECT_THAT(ps_line(each->pid()), HasSubstr(" none "));
    expect_unharmed(*each);
  }
}

TEST_F(EnableStreamLive, AWorkerThatIsKilledWhileItSwitchesOffIsReplaced) {
  covers("enable", "`--enable`: SIGKILL of the worker while it switches programs off");
  constexpr int programs = 24;  // it takes some milliseconds for each
  const Command doze = copied(program("dozing", {"5"}), "dozing-off");
  std::deque<Process> processes;
  for (int number = 0; number < programs; ++number) {
    processes.emplace_back(doze, "ready");
    processes.back().go();
  }
  Tracer tracer({"--enable", "-n", "dozing-off", "--events", "process"});
  for (int number = 0; number < programs; ++number) tracer.process().line_with(R"("result":"done")");
  const auto enablers = children_named(tracer.process().pid(), "rtev-enabler");
  ASSERT_THAT(enablers, SizeIs(1));
  const auto workers = children_named(enablers.front(), "rtev-enabler");
  ASSERT_THAT(workers, SizeIs(1));
  const auto is_off = [this](const Process& process) { return !fs::exists(ring_of(process.pid())); };
  ASSERT_TRUE(std::ranges::none_of(processes, is_off));
  tracer.process().signal(SIGINT);
  EXPECT_TRUE(poll_until([&] { return std::ranges::any_of(processes, is_off); }));
  ::kill(workers.front(), SIGKILL);
  EXPECT_EQ(tracer.process().wait().status.code(), 0);
  std::istringstream lines(run_tool({"ps", "-d", "1ms"}).out);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.contains("dozing-off")) continue;
    ++count;
    EXPECT_THAT(line, AnyOf(HasSubstr(" none "), HasSubstr(" paused ")));
  }
  EXPECT_EQ(count, programs) << "all of them live";
}

TEST_F(EnableStreamLive, AKilledGuardianIsReplaced) {
  covers("enable", "`--enable`: SIGKILL of the guardian, and later of all others");
  Process before(awaiting(), "ready"), after(awaiting(), "ready");
  before.go();
  Tracer tracer({"--enable"});
  await_work(before);
  const auto enablers = children_named(tracer.process().pid(), "rtev-enabler");
  ASSERT_THAT(enablers, SizeIs(1));
  const auto guardians = [&] { return children_named(enablers.front(), "rtev-guardian"); };
  const auto killed = guardians();
  ASSERT_THAT(killed, SizeIs(1));
  ::kill(killed.front(), SIGKILL);
  // Its successor is given the programs whose events are on before those that are switched on later.
  after.go();
  await_work(after);
  ASSERT_THAT(guardians(), AllOf(SizeIs(1), Not(Contains(killed.front()))));
  ::kill(enablers.front(), SIGKILL);
  tracer.process().signal(SIGKILL);
  for (Process* each : {&before, &after}) {
    await_ps(each->pid(), " paused ");
    expect_unharmed(*each);
  }
}

TEST_F(EnableStreamLive, EventsThatComeOnWhileTheGuardianIsKilledAreOffAtTheEnd) {
  covers("enable", "`--enable`: SIGKILL of the guardian while events come on");
  constexpr int programs = 12;
  constexpr std::chrono::milliseconds last_moment{24};
  std::deque<Process> processes;
  for (int number = 0; number < programs; ++number) processes.emplace_back(awaiting(), "ready");
  Tracer tracer({"--enable"});
  const auto enablers = children_named(tracer.process().pid(), "rtev-enabler");
  ASSERT_THAT(enablers, SizeIs(1));
  for (int number = 0; number < programs; ++number) {
    processes[number].go();
    // The kill comes later each time.
    std::this_thread::sleep_for(last_moment * number / programs);
    for (const pid_t guardian : children_named(enablers.front(), "rtev-guardian")) ::kill(guardian, SIGKILL);
    await_work(processes[number]);
  }
  tracer.stop();
  for (Process& process : processes) {
    EXPECT_THAT(ps_line(process.pid()), AnyOf(HasSubstr(" none "), HasSubstr(" paused ")));
    expect_unharmed(process);
  }
}

class ChangingEnableLive : public EnableStreamLive {
 protected:
  /// The program has changed, and waits. Its events go off, and a child of it lives.
  void expect_switched_off(Process& process, Tracer& tracer, const std::string& result) {
    await_ps(process.pid(), " none ");
    EXPECT_FALSE(fs::exists(ring_of(process.pid())));
    process.go();
    EXPECT_EQ(process.line_with("child "), "child exited with 0");
    const Trace trace = tracer.stop();
    std::vector<std::string> results;
    for (const Json& event : trace.of(process.pid(), "process"))
      if (event.value("action", "") == "enable") results.push_back(event.value("result", ""));
    EXPECT_THAT(results, IsSupersetOf({std::string("done"), result}));
  }
};

TEST_F(ChangingEnableLive, AProgramThatGivesItsRightsUpIsSwitchedOff) {
  covers("enable", "`--enable`: a program of root that becomes another user, and forks");
  Process process(program("drop_user"), "ready");
  Tracer tracer({"--enable"});
  process.go_until("dropped");
  expect_switched_off(process, tracer, "privileged");
}

TEST_F(ChangingEnableLive, AProgramThatChangesItsRootDirectoryIsSwitchedOff) {
  covers("enable", "`--enable`: a program of root that changes its root directory, and forks");
  Process process(program("drop_user", {"root"}), "ready");
  Tracer tracer({"--enable"});
  process.go_until("dropped");
  expect_switched_off(process, tracer, "directory");
}

TEST_F(ChangingEnableLive, AProgramThatLeavesItsMountNamespaceIsSwitchedOff) {
  covers("enable", "`--enable`: a program of root that leaves its mount namespace, and forks");
  Process process(program("drop_user", {"mounts"}), "ready");
  Tracer tracer({"--enable"});
  process.go_until("dropped");
  expect_switched_off(process, tracer, "directory");
}

TEST_F(ChangingEnableLive, AlsoAfterTheWorkerWasReplaced) {
  covers("enable", "`--enable`: SIGKILL of the worker, then a program of root becomes another user, and forks");
  Process process(program("drop_user", {"late"}), "ready"), before(awaiting(), "ready");
  Tracer tracer({"--enable"});
  process.go_until("on");
  // A program that a worker is at when it is killed is left alone: it is at another one.
  before.go();
  await_work(before);
  const auto enablers = children_named(tracer.process().pid(), "rtev-enabler");
  ASSERT_THAT(enablers, SizeIs(1));
  const auto workers = [&] { return children_named(enablers.front(), "rtev-enabler"); };
  const auto killed = workers();
  ASSERT_THAT(killed, SizeIs(1));
  ::kill(killed.front(), SIGKILL);
  ASSERT_TRUE(poll_until([&] { return workers().size() == 1 && workers() != killed; }));
  // The new worker is given the programs whose events are on before those that start later.
  Process after(awaiting(), "ready");
  after.go();
  await_work(after);
  process.go_until("dropped");
  expect_switched_off(process, tracer, "privileged");
  expect_unharmed(after);
}

/// A process with this pid, which no other one has, dies by this signal.
void die_with_pid(pid_t pid, int signal) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uintptr_t>(&pid);
  arguments.set_tid_size = 1;
  const auto child = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
  if (child == 0) {
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::signal(signal, SIG_DFL);
    ::syscall(SYS_kill, pid, signal);
    ::_exit(0);
  }
  ASSERT_EQ(child, pid) << std::strerror(errno);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST_F(EnableStreamLive, WhoDiesWithAPidThatWasItsIsNotTakenForIt) {
  covers("enable", "`--enable`: another process takes the pid of a program that has just been switched on, and dies");
  Process process(awaiting(), "ready"), next(awaiting(), "ready");
  Tracer tracer({"--enable", "-p", std::to_string(process.pid()), "-p", std::to_string(next.pid())});
  process.go();
  await_work(process);
  const auto enablers = children_named(tracer.process().pid(), "rtev-enabler");
  ASSERT_THAT(enablers, SizeIs(1));
  const auto workers = children_named(enablers.front(), "rtev-enabler");
  ASSERT_THAT(workers, SizeIs(1));
  // It is busy with others.
  ::kill(workers.front(), SIGSTOP);
  process.close_stdin();
  EXPECT_EQ(process.wait().status.code(), 0);
  die_with_pid(process.pid(), SIGSEGV);
  ::kill(workers.front(), SIGCONT);
  next.go();
  await_work(next);
  const Trace trace = tracer.stop();
  EXPECT_EQ(enabled(trace, next.pid()).value("result", ""), "done");
  expect_unharmed(next);
}

/// Which processes of a tracer are killed.
enum class KilledOfTracer : std::uint8_t { tracer, enabler, both };

class KilledEnableStreamLive : public EnableStreamLive,
                               public ::testing::WithParamInterface<std::pair<const char*, KilledOfTracer>> {};

TEST_P(KilledEnableStreamLive, EventsArePaused) {
  covers("enable", std::string("`--enable`: SIGKILL of ") + GetParam().first);
  Process process(awaiting(), "ready");
  process.go();
  Tracer tracer({"--enable"});
  await_work(process);
  const auto enablers = children_named(tracer.process().pid(), "rtev-enabler");
  ASSERT_THAT(enablers, SizeIs(1));
  const KilledOfTracer killed = GetParam().second;
  if (killed != KilledOfTracer::tracer) ::kill(enablers.front(), SIGKILL);
  if (killed != KilledOfTracer::enabler) tracer.process().signal(SIGKILL);
  // Without the enabler the guardian is left, which only pauses.
  await_ps(process.pid(), killed == KilledOfTracer::tracer ? " none " : " paused ");
  if (killed == KilledOfTracer::enabler) {
    EXPECT_THAT(tracer.interrupt().err, HasSubstr("the process that does it is gone"));
  }
  expect_unharmed(process);
}

INSTANTIATE_TEST_SUITE_P(Processes, KilledEnableStreamLive,
                         ::testing::Values(std::pair("the tracer", KilledOfTracer::tracer),
                                           std::pair("the enabler", KilledOfTracer::enabler),
                                           std::pair("the tracer and the enabler", KilledOfTracer::both)),
                         [](const auto& test) {
                           std::string name = test.param.first;
                           std::erase(name, ' ');
                           return name;
                         });

}  // namespace
}  // namespace rtev::test
