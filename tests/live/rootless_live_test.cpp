// SPDX-License-Identifier: MIT
// Without root and without BPF: programs that the tool starts, and processes of the same user.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

/// A place where BPF is denied.
struct Place {
  std::string label;
  std::string what;
  Strings wrapper;  ///< a command that execs the command after it
};

const Place plain_user{
    "User", "as a plain user", {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"}};
/// With the capabilities that engines leave to root, in a pid namespace.
const Place container{"Container",
                      "with the capabilities and the pid namespace of a container",
                      {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "setpriv", "--inh-caps=-all",
                       "--bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+"
                       "net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap"}};
const Place no_bpf{"NoBpf",
                   "as root without CAP_BPF",
                   {"setpriv", "--inh-caps=-all", "--bounding-set=-bpf,-sys_admin", "--no-new-privs"}};

class RootlessLive : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    ASSERT_EQ(::chown(dir.path().c_str(), nobody, nobody), 0);
  }

  static Strings in(const Place& place, const Strings& arguments) {
    Strings argv = place.wrapper;
    argv.push_back(tool());
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return argv;
  }
  static Outcome run_in(const Place& place, const Strings& arguments,
                        const std::map<std::string, std::string>& env = {}) {
    return run({.argv = in(place, arguments), .env = env});
  }
  /// Runs a command, and returns the stream.
  Trace traced(const Place& place, const Strings& command, int status = 0,
               const std::map<std::string, std::string>& env = {}) {
    Strings arguments{"-f", "json", "--sched", "off", "-o", dir / "trace.jsonl", "--"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    outcome_ = run_in(place, arguments, env);
    EXPECT_EQ(outcome_.status.code(), status) << outcome_.err;
    return Trace::parse(read_file(dir / "trace.jsonl"));
  }
  /// Rings go to dir, and stay there.
  std::map<std::string, std::string> kept() const {
    return {{"OCAML_RUNTIME_EVENTS_DIR", dir.path()}, {"OCAML_RUNTIME_EVENTS_PRESERVE", "1"}};
  }
  static Strings with(Strings first, const Strings& rest) {
    first.insert(first.end(), rest.begin(), rest.end());
    return first;
  }

  Outcome outcome_{};  ///< of the last traced()
};

void expect_nothing_missing(const Trace& trace) {
  EXPECT_EQ(trace.summary["rings_missed"], 0);
  for (const Json& process : trace.summary["processes"]) {
    EXPECT_EQ(process["words"]["written"], process["words"]["delivered"]) << process;
    EXPECT_GT(process["words"]["written"], 0u) << process;
  }
}

class RootlessPlaceLive : public RootlessLive, public ::testing::WithParamInterface<Place> {};

TEST_P(RootlessPlaceLive, ACommandsEventsAreThoseOfItsRings) {
  covers("place", "-- CMD " + GetParam().what);
  const struct {
    Strings command;
    int status;
    std::size_t processes;
  } cases[] = {{{ocaml_program("hello")}, 0, 1},
               {{ocaml_program("busy_alloc"), "20"}, 0, 1},
               {{ocaml_program("domains"), "3", "3"}, 0, 1},
               {{ocaml_program("user_events")}, 0, 1},
               {{ocaml_program("uncaught")}, 2, 1},
               {{ocaml_program("forker")}, 0, 2}};
  for (const auto& [command, status, processes] : cases) {
    SCOPED_TRACE(command.front());
    const Trace trace = traced(GetParam(), command, status, kept());
    EXPECT_EQ(trace.summary["processes"].size(), processes);
    EXPECT_EQ(trace.summary["rings_missed"], 0);
    for (const Json& process : trace.summary["processes"]) {
      const pid_t pid = process["pid"];
      expect_exact(trace, dir.path(), pid);
      fs::remove(ring_of(pid));
    }
  }
}

TEST_P(RootlessPlaceLive, DescendantsAreFollowed) {
  const Trace trace = traced(GetParam(), {"sh", "-c", "\"$0\"; \"$1\" 50 & wait; exec \"$1\" 50",
                                          ocaml_program("hello"), ocaml_program("steps")});
  std::vector<Json> begun = trace.of("process");
  std::erase_if(begun, [](const Json& event) { return event["action"] != "exec"; });
  EXPECT_EQ(begun.size(), 3u) << "hello, and steps twice";
  EXPECT_EQ(trace.of("user").size(), 100u);
  expect_nothing_missing(trace);
}

TEST_P(RootlessPlaceLive, ReportsSayWhatIsUnknown) {
  const Strings command{"--", ocaml_program("busy_alloc"), "20"};
  for (const char* const kind : {"stats", "latency", "pauses"}) {
    const Outcome outcome = run_in(GetParam(), with({kind, "-f", "json", "-o", dir / "report.json"}, command));
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    EXPECT_THAT(outcome.err, ContainsRegex("unknown (without (root|CAP_BPF)|here)")) << kind;
    const Json report = Json::parse(read_file(dir / "report.json"));
    fs::remove(dir / "report.json");
    const Json& counts = report.contains("counts") ? report["counts"] : report;
    EXPECT_EQ(counts["scheduler_seen"], false) << kind << ": " << report;
  }
  const Outcome summary = run_in(GetParam(), with({"summary"}, command));
  EXPECT_EQ(summary.status.code(), 0) << summary.err;
  EXPECT_THAT(summary.out, HasSubstr("busy_alloc"));
  EXPECT_THAT(summary.out, HasSubstr("unknown whether threads ran or waited"));
}

TEST_P(RootlessPlaceLive, StallsAreFoundBySampling) {
  const Strings command{"--", ocaml_program("evloop"), "120"};
  const Outcome outcome = run_in(GetParam(), with({"stalls", "-f", "json", "-o", dir / "report.json"}, command));
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  const Json report = Json::parse(read_file(dir / "report.json"));
  fs::remove(dir / "report.json");
  EXPECT_GT(report["sample_interval_ns"], 0);
  ASSERT_EQ(report["programs"].size(), 1u) << report;
  const Json& program = report["programs"][0];
  EXPECT_EQ(program["comm"], "evloop");
  int computed = 0, read = 0;
  for (const Json& stall : program["stalls"]) {
    EXPECT_EQ(stall["domain"], 0);
    computed += stall["time_ns"]["code"].get<std::uint64_t>() > 150'000'000 && stall["span"] == "rebuild" ? 1 : 0;
    read += stall["blocked_in"] == "read" && stall["blocked_in_ns"].get<std::uint64_t>() > 150'000'000 ? 1 : 0;
  }
  EXPECT_GT(computed, 0) << program;
  EXPECT_LE(computed, 3) << program;
  if (GetParam().label == plain_user.label) {
    EXPECT_EQ(program["call"], "select");
    EXPECT_GT(read, 0) << program;
  }
  const Outcome text = run_in(GetParam(), with({"stalls", "--fail-if", "max>100ms"}, command));
  EXPECT_EQ(text.status.code(), 3) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("on CPU"), HasSubstr("sampled every 10.0ms")));
}

TEST_P(RootlessPlaceLive, SpansOfOcamlTraceAreMeasured) {
  const Strings command{"--", ocaml_program("named_spans"), "20"};
  const auto report_of = [&](const Strings& kind) {
    const Outcome outcome =
        run_in(GetParam(), with(with(kind, {"-f", "json", "--sched", "off", "-o", dir / "report.json"}), command));
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    const Json report = Json::parse(read_file(dir / "report.json"));
    fs::remove(dir / "report.json");
    return report;
  };
  const Json spans = report_of({"latency", "--span", "*"});
  std::map<std::string, int> counts, expected{{"request", 20}, {"parse", 20}, {"answer", 20}};
  for (const Json& group : spans["spans"]) counts[group["name"]] = group["count"];
  EXPECT_EQ(counts, expected) << spans;
  const Json stats = report_of({"stats"});
  counts.clear();
  for (const Json& event : stats["processes"][0]["user_event_counts"]) counts[event["name"]] = event["spans"]["count"];
  EXPECT_EQ(counts, expected) << stats;
}

TEST_P(RootlessPlaceLive, ExceededLimitsFailTheRun) {
  const Outcome outcome = run_in(
      GetParam(), {"latency", "--fail-if", "max>1ns", "--sched", "off", "--", ocaml_program("busy_alloc"), "20"});
  EXPECT_EQ(outcome.status.code(), 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("failed: "));
  EXPECT_EQ(run_in(GetParam(), {"stats", "--", "sh", "-c", "exit 7"}).status.code(), 7);
}

TEST_P(RootlessPlaceLive, WithoutASelectionTheErrorNamesTheWaysWithoutRoot) {
  const Outcome outcome = run_in(GetParam(), {"-d", "1ms"});
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("cannot trace this host: "), HasSubstr("rtev-bpf -- CMD"), HasSubstr("rtev-bpf -p PID")));
  // A program's file cannot give root what root was started without.
  const bool is_root = GetParam().label != plain_user.label;
  EXPECT_EQ(outcome.err.contains("sudo setcap cap_bpf,"), !is_root) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Places, RootlessPlaceLive, ::testing::Values(plain_user, container, no_bpf), by_label);

TEST_F(RootlessLive, StacksOfOnesOwnProgramsNeedNoBpf) {
  const int level = std::stoi(read_file("/proc/sys/kernel/perf_event_paranoid"));
  if (level > 2) GTEST_SKIP() << "kernel.perf_event_paranoid is " << level;
  // Two seconds of work: stacks are taken once the program has been looked at.
  const Outcome outcome = run_in(plain_user, {"profile", "-f", "json", "-o", dir / "profile.json", "--stack-rate",
                                              "1000", "--", ocaml_program("busy_alloc"), "5000"});
  ASSERT_EQ(outcome.status.code(), 0) << outcome.err;
  const Json profile = Json::parse(read_file(dir / "profile.json"));
  EXPECT_GT(profile["samples"].get<int>(), 20);
  EXPECT_THAT(profile["functions"].dump(), HasSubstr("busy_alloc.ml"));
  const Outcome paused = run_in(plain_user, {"pauses", "--stacks", "-f", "json", "-o", dir / "pauses.json",
                                             "--stack-rate", "5000", "--", ocaml_program("busy_alloc"), "5000"});
  ASSERT_EQ(paused.status.code(), 0) << paused.err;
  const Json pauses = Json::parse(read_file(dir / "pauses.json"))["pauses"];
  EXPECT_TRUE(std::ranges::any_of(pauses, [](const Json& pause) { return !pause["stacks"].empty(); })) << pauses;
}

/// By a container's filter of system calls, or by the host's setting.
TEST_F(RootlessLive, StacksThatTheHostRefusesSayWhy) {
  const std::string level = dir / "level";
  std::ofstream(level) << "4\n";
  const Strings strict{
      "unshare", "--mount", "sh", "-c", R"(mount --bind "$0" /proc/sys/kernel/perf_event_paranoid && exec "$@")",
      level};
  for (const Strings& report :
       {Strings{"profile"}, {"pauses", "--stacks"}, {"record", "--stacks", "-o", dir / "a.fxt"}}) {
    const Strings arguments = with(report, {"--", ocaml_program("hello")});
    for (const auto& [argv, why] : {std::pair{in(plain_user, arguments), "filter of system calls may forbid it"},
                                    {with(strict, in(plain_user, arguments)), "kernel.perf_event_paranoid is 4"}}) {
      const Outcome outcome = run({.argv = argv, .refused_call = SYS_perf_event_open});
      EXPECT_EQ(outcome.status.code(), 1) << report[0];
      EXPECT_THAT(outcome.err, AllOf(HasSubstr("perf_event_open(2)"), HasSubstr(why), HasSubstr("\nhint: ")))
          << report[0];
    }
    const Outcome with_bpf = run_tool(arguments, {.argv = {}, .refused_call = SYS_perf_event_open});
    EXPECT_EQ(with_bpf.status.code(), 1) << report[0];
    EXPECT_THAT(with_bpf.err, AllOf(HasSubstr("hint: "), HasSubstr("a filter of system calls"))) << report[0];
  }
}

TEST_F(RootlessLive, StacksOfSleepsAndOfAllocationsNeedBpf) {
  for (std::vector<std::string> command : {std::vector<std::string>{"profile", "--off-cpu"}, {"allocs"}}) {
    command.insert(command.end(), {"--", ocaml_program("hello")});
    const Outcome outcome = run_in(plain_user, command);
    EXPECT_EQ(outcome.status.code(), 1) << command[0];
    EXPECT_THAT(outcome.err, HasSubstr("CAP_BPF: not held: BPF programs cannot be loaded\nhint: run as root"));
  }
}

TEST_F(RootlessLive, StacksOfOnesOwnRunningProgramNeedNoBpf) {
  const int level = std::stoi(read_file("/proc/sys/kernel/perf_event_paranoid"));
  if (level > 2) GTEST_SKIP() << "kernel.perf_event_paranoid is " << level;
  Command program = with_events("busy_alloc", {"5000"});
  program.user = nobody;
  Process process(program, "ready");
  std::optional<Process> tracer;
  start_ready(tracer, {.argv = in(plain_user, {"profile", "-f", "json", "-o", dir / "profile.json", "--stack-rate",
                                               "1000", "-p", std::to_string(process.pid())})});
  run_through(process);
  const Outcome outcome = tracer->wait();
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(Json::parse(read_file(dir / "profile.json"))["functions"].dump(), HasSubstr("busy_alloc.ml"));
}

TEST_F(RootlessLive, ARecordingHasTheEventsOfTheRing) {
  const Outcome outcome =
      run_in(plain_user, {"record", "-o", dir / "a.fxt", "--", ocaml_program("domains"), "3", "3"}, kept());
  ASSERT_EQ(outcome.status.code(), 0) << outcome.err;
  const Trace trace = dumped(dir / "a.fxt");
  ASSERT_EQ(trace.summary["processes"].size(), 1u);
  expect_exact(trace, dir.path(), trace.summary["processes"][0]["pid"]);
}

/// Most children end within milliseconds.
TEST_F(RootlessLive, NoEventOfManyShortProcessesIsMissing) {
  covers("lifecycle", "many short processes, without root");
  const Trace trace = traced(plain_user, {ocaml_program("storm"), "60", "10"});
  std::size_t children = 0;
  std::istringstream lines(outcome_.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    pid_t pid = 0;
    std::int64_t written = 0;
    if (!(words >> pid >> written)) continue;
    ++children;
    EXPECT_EQ(steps(trace, pid), count_to(written)) << line;
  }
  EXPECT_EQ(children, 60u);
  expect_nothing_missing(trace);
}

TEST_F(RootlessLive, TheDirectoryOfRingsIsRemoved) {
  traced(plain_user, {"sh", "-c", "echo \"$OCAML_RUNTIME_EVENTS_DIR\"; \"$0\"", ocaml_program("uncaught")}, 2);
  const std::string directory = outcome_.out.substr(0, outcome_.out.find('\n'));
  EXPECT_THAT(directory, HasSubstr("rtev-bpf."));
  EXPECT_FALSE(fs::exists(directory));
}

TEST_F(RootlessLive, ARingThatIsTakenDownEarlyIsReadToItsEnd) {
  const Trace trace = traced(plain_user, {ocaml_program("takedown"), "1000"});
  ASSERT_EQ(trace.summary["processes"].size(), 1u);
  EXPECT_EQ(steps(trace, trace.summary["processes"][0]["pid"]), count_to(1000));
  expect_nothing_missing(trace);
}

/// The next program may overwrite what was not read of the one before; its own events are complete.
TEST_F(RootlessLive, AProgramThatRunsAnotherOneIsFollowed) {
  covers("lifecycle", "exec of one OCaml program by another, without root");
  const Trace trace = traced(plain_user, {ocaml_program("chain"), "10", ocaml_program("steps"), "50"});
  ASSERT_FALSE(trace.summary["processes"].empty());
  EXPECT_EQ(trace.actions(trace.summary["processes"][0]["pid"]).back(), "exit");
  const auto all = steps(trace, trace.summary["processes"][0]["pid"]);
  ASSERT_GE(all.size(), 50u);
  EXPECT_EQ(std::vector(all.end() - 50, all.end()), count_to(50));
}

TEST_F(RootlessLive, ABurstFitsIntoTheLargerRings) {
  for (const bool with_bpf : {false, true}) {
    Command command{.argv = in(plain_user, {"record", "--sched", "off", "-o", dir / "a.fxt", "--",
                                            ocaml_program("bursts"), "300000"})};
    if (with_bpf) command.argv.erase(command.argv.begin(), command.argv.begin() + std::ssize(plain_user.wrapper));
    Process process(command, "ready");
    process.go_until("done");
    process.close_stdin();
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.status.code(), 0);
    EXPECT_THAT(outcome.err, AllOf(ContainsRegex("300,0[0-9]+ events of 1 OCaml process"), HasSubstr("nothing lost")));
    fs::remove(dir / "a.fxt");
  }
}

TEST_F(RootlessLive, TheUsersRingSizeCounts) {
  traced(plain_user, {"sh", "-c", "echo \"$OCAMLRUNPARAM\""}, 0, {{"OCAMLRUNPARAM", "v=0,e=12"}});
  EXPECT_EQ(outcome_.out, "v=0,e=12\n");
  traced(plain_user, {"sh", "-c", "echo \"$OCAMLRUNPARAM\""}, 0, {{"OCAMLRUNPARAM", "v=0"}});
  EXPECT_THAT(outcome_.out, StartsWith("v=0,e="));
}

TEST_F(RootlessLive, RootIsToldWhichCapabilityItLacks) {
  for (const Strings& arguments : {Strings{"profile", "--", ocaml_program("hello")}, Strings{"stats", "-d", "1ms"}}) {
    const Outcome outcome = run_in(no_bpf, arguments);
    EXPECT_EQ(outcome.status.code(), 1);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("CAP_BPF: not held"), Not(HasSubstr("run as root"))));
  }
}

TEST_F(RootlessLive, AProcessOfTheUserIsTraced) {
  covers("place", "-p PID of the same user, without root");
  Command program = with_events("bursts", {"20000"});
  program.user = nobody;
  Process process(program, "ready");
  std::optional<Process> tracer;
  start_ready(tracer, {.argv = in(plain_user, {"-f", "json", "-p", std::to_string(process.pid())})});
  process.go_until("done");
  process.close_stdin();
  process.wait();
  const Outcome outcome = tracer->wait();
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("unknown without root"));
  const Trace trace = Trace::parse(outcome.out);
  EXPECT_EQ(trace.of(process.pid(), "user").size(), 20'000u);
  EXPECT_EQ(trace.actions(process.pid()).front(), "found");
  EXPECT_EQ(trace.process(process.pid())["version"], "5.3");
  auto words = trace.words(process.pid());
  EXPECT_EQ(words["lost"], 0u);
  EXPECT_EQ(words["written"], words["delivered"] + words["before_attach"]);
}

TEST_F(RootlessLive, ARingThatAProcessMakesLaterIsReadFromItsBeginning) {
  Command program = this->program("api_start");
  program.user = nobody;
  Process process(program, "ready");
  std::optional<Process> tracer;
  start_ready(tracer, {.argv = in(plain_user, {"-f", "json", "-p", std::to_string(process.pid())})});
  process.go_until("started");
  tracer->line_with("\"ring\"");
  run_through(process);
  const Trace trace = Trace::parse(tracer->wait().out);
  EXPECT_FALSE(trace.of(process.pid(), "begin").empty());
  auto words = trace.words(process.pid());
  EXPECT_EQ(words["before_attach"], 0u);
}

TEST_F(RootlessLive, AProcessOfAnotherUserIsRefused) {
  Process foreign(with_events("busy_alloc"), "ready");
  const Outcome outcome = run_in(plain_user, {"-p", std::to_string(foreign.pid())});
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("cannot trace process " + std::to_string(foreign.pid())),
                                 HasSubstr("belongs to root"), HasSubstr("hint: ")));
}

TEST_F(RootlessLive, AHiddenProcessOfAnotherUserIsRefused) {
  Process foreign(with_events("busy_alloc"), "ready");
  Place hidden = plain_user;
  const Strings mount{"unshare", "--mount", "sh", "-c", "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"", "sh"};
  hidden.wrapper.insert(hidden.wrapper.begin(), mount.begin(), mount.end());
  const Outcome outcome = run_in(hidden, {"-p", std::to_string(foreign.pid()), "-d", "1ms"});
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("cannot trace process " + std::to_string(foreign.pid())),
                                 HasSubstr("/proc does not show it"), HasSubstr("hint: ")));
}

TEST_F(RootlessLive, PsListsProcessesOfTheUser) {
  covers("place", "ps of a plain user");
  Process foreign(with_events("busy_alloc"), "ready");
  Command program = with_events("bursts");
  program.user = nobody;
  Process own(program, "ready");
  const Outcome outcome = run_in(plain_user, {"ps", "-d", "1ms"});
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex(std::to_string(own.pid()) + R"( +nobody +bursts +5\.3 +active )"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("busy_alloc")));
  EXPECT_THAT(outcome.err, HasSubstr("only processes of nobody are shown"));
}

TEST_F(RootlessLive, SignalsReachTheCommandAndTheStreamEndsInOrder) {
  Process tracer(
      {.argv = in(plain_user, {"-f", "json", "-o", dir / "trace.jsonl", "--", ocaml_program("bursts"), "1000"})},
      "ready");
  tracer.go_until("done");
  tracer.signal(SIGINT);
  EXPECT_EQ(tracer.wait().status.code(), 128 + SIGINT);
  const Trace trace = Trace::parse(read_file(dir / "trace.jsonl"));
  EXPECT_EQ(trace.of("user").size(), 1000u);
  EXPECT_EQ(trace.of("process").back()["status"]["signal"], SIGINT);
  expect_nothing_missing(trace);
}

}  // namespace
}  // namespace rtev::test
