// SPDX-License-Identifier: MIT
// rtev-bpf enable and disable: events of running programs are switched on, and programs that cannot are left alone.

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include "live/harness.hpp"
#include "live/oracle.hpp"
#include "live/variety.hpp"

namespace rtev::test {
namespace {

Command enable_command(pid_t pid, Strings arguments = {}) {
  Command command{.argv = {tool(), "enable", "-p", std::to_string(pid)}};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  return command;
}

/// Whether a hook of the process is replaced, or was when everything was killed.
bool has_journal_entry(pid_t pid) {
  const std::string begin = std::to_string(pid) + "-";
  std::error_code none;
  return std::ranges::any_of(fs::directory_iterator("/run/rtev-bpf/hooks", none), [&](const fs::directory_entry& file) {
    return file.path().filename().string().starts_with(begin);
  });
}

class EnableLive : public LiveTest {
 protected:
  /// A program that works until its events are on, then ends; with `again` it does that twice.
  Command awaiting(const std::string& again = {}) const {
    const Variety native{.ocaml = "5.3", .build = {.kind = "native", .what = "native"}};
    return {.argv = {native.program(), "await", again}, .env = {{"OCAML_RUNTIME_EVENTS_DIR", dir.path()}}};
  }
  static Outcome disable(const Process& process) {
    return run({.argv = {tool(), "disable", "-p", std::to_string(process.pid())}});
  }
  /// Switches the events of a program on that waits at a gate, and lets it go on meanwhile.
  static Outcome enable(Process& process, const Strings& arguments = {}) {
    Process enabling(enable_command(process.pid(), arguments));
    process.go();
    return enabling.wait();
  }
};

class EnableBuildLive : public EnableLive, public ::testing::WithParamInterface<Variety> {
 protected:
  void SetUp() override {
    EnableLive::SetUp();
    if (IsSkipped() || HasFatalFailure() || fs::exists(GetParam().program())) return;
    const std::string obstacle = "no OCaml " + std::string(GetParam().ocaml) + " was found when the tests were built";
    if (std::getenv("CI") != nullptr) FAIL() << obstacle;
    GTEST_SKIP() << obstacle;
  }

  /// Stripped programs keep what they export at the most. Debian's OCaml 5.4 has stripped shared runtimes.
  static bool lacks_symbols() {
    const std::string_view kind = GetParam().build.kind;
    return kind.contains("stripped") || (kind.contains("shared") && std::string_view(GetParam().ocaml) == "5.4");
  }

  /// The program, with events off.
  Command built(const Strings& arguments = {}) const {
    Command command{.argv = {GetParam().program()}, .env = {{"OCAML_RUNTIME_EVENTS_DIR", dir.path()}}};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    return command;
  }
};

TEST_P(EnableBuildLive, IsSwitchedOnOrLeftAlone) {
  Command command = built({"await"});
  command.env["OCAML_RUNTIME_EVENTS_PRESERVE"] = "1";
  const Outcome dry_run = [&] {
    Process asleep(command, "ready");
    return run(enable_command(asleep.pid(), {"--dry-run"}));
  }();
  const bool is_possible = dry_run.status.code() == 0;
  covers("enable", std::string(GetParam().build.what) + (is_possible ? "" : ": left alone"), GetParam().ocaml);
  if (!is_possible) {
    EXPECT_THAT(dry_run.err, HasSubstr("symbols"));
    EXPECT_TRUE(lacks_symbols()) << dry_run.err;
    Process untouched(built(), "ready");
    EXPECT_EQ(run(enable_command(untouched.pid())).status.code(), 1);
    EXPECT_THAT(run_through(untouched).out, HasSubstr("wrote "));
    EXPECT_FALSE(fs::exists(ring_of(untouched.pid())));
    return;
  }
  Tracer tracer({"--history"});
  Process process(command, "ready");
  const Outcome enabled = enable(process);
  EXPECT_EQ(enabled.status.code(), 0) << enabled.err;
  EXPECT_THAT(enabled.out, HasSubstr("events on after"));
  const Outcome outcome = run_through(process);
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("wrote 303"));
  const Trace trace = tracer.stop();
  expect_exact(trace, oracle(dir.path(), process.pid(), GetParam().reader()), process.pid());
  EXPECT_EQ(trace.of(process.pid(), "user").size(), 303u);
}

INSTANTIATE_TEST_SUITE_P(Builds, EnableBuildLive, ::testing::ValuesIn(all_varieties()), [](const auto& test) {
  std::string name = std::string(test.param.ocaml) + "_" + test.param.build.kind;
  std::erase(name, '.');
  return name;
});

TEST_F(EnableLive, DisabledAndEnabledAgain) {
  covers("enable", "`disable` of what was switched on, and `enable` again");
  Process process(awaiting("await"), "ready");
  EXPECT_THAT(enable(process).out, HasSubstr(", ring " + ring_of(process.pid()).native()));
  process.lines_until("done");
  EXPECT_THAT(disable(process).out, HasSubstr("events off"));
  EXPECT_THAT(ps_line(process.pid()), HasSubstr(" none - "));
  EXPECT_FALSE(fs::exists(ring_of(process.pid())));
  EXPECT_THAT(disable(process).out, HasSubstr("off already"));
  EXPECT_THAT(enable(process).out, HasSubstr("events on after"));
  EXPECT_EQ(process.line_with("wrote "), "wrote 303");
  EXPECT_EQ(run_through(process).status.code(), 0);
  EXPECT_FALSE(fs::exists(ring_of(process.pid())));
}

TEST_F(EnableLive, OtherRunsSaySo) {
  covers("enable", "`enable` and `disable` during another trace");
  Process process(awaiting(), "ready");
  Tracer tracer({"-p", std::to_string(process.pid())});
  ASSERT_EQ(enable(process).status.code(), 0);
  process.lines_until("done");
  ASSERT_EQ(disable(process).status.code(), 0);
  EXPECT_EQ(run_through(process).status.code(), 0);
  const Trace trace = tracer.stop();
  std::vector<std::string> results;
  for (const Json& event : trace.of(process.pid(), "process"))
    if (event["action"] == "enable") results.push_back(event["result"]);
  EXPECT_THAT(results, IsSupersetOf({"done", "switched off"}));
  EXPECT_THAT(trace.actions(process.pid()), Contains("pause"));
}

TEST_F(EnableLive, ProbedAfterDisable) {
  covers("enable", "`--ringless` of a program that was switched off again");
  Process process(awaiting("again"), "ready");
  ASSERT_EQ(enable(process).status.code(), 0);
  process.lines_until("done");
  ASSERT_EQ(disable(process).status.code(), 0);
  Tracer tracer({"--ringless", "-p", std::to_string(process.pid())});
  EXPECT_EQ(run_through(process).status.code(), 0);
  const Trace trace = tracer.stop();
  EXPECT_THAT(trace.actions(process.pid()), Contains("probe"));
  EXPECT_FALSE(trace.of(process.pid(), "begin").empty());
}

TEST_F(EnableLive, ATakenNameIsRefused) {
  covers("enable", "a file of the ring's name: it may be the ring of another container's program");
  Process process(program("busy_alloc"), "ready");
  std::ofstream(ring_of(process.pid())) << "not empty";
  const Outcome outcome = run(enable_command(process.pid()));
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("name of the ring: there is a file"), HasSubstr("hint:")));
  EXPECT_EQ(run_through(process).status.code(), 0);
  EXPECT_EQ(read_file(ring_of(process.pid())), "not empty");
}

TEST_F(EnableLive, ARemovedDirectoryIsRefused) {
  covers("enable", "a directory that was removed");
  Command command = program("busy_alloc");
  const fs::path directory = dir / "removed";
  fs::create_directory(directory);
  command.env["OCAML_RUNTIME_EVENTS_DIR"] = directory;
  Process process(command, "ready");
  fs::remove(directory);
  const Outcome outcome = run(enable_command(process.pid()));
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, HasSubstr("directory of the ring"));
  EXPECT_EQ(run_through(process).status.code(), 0);
}

TEST_F(EnableLive, ADirectoryOfAnotherUserIsRefused) {
  covers("enable", "root's program with its ring in a directory of another user");
  constexpr uid_t other = 12345;
  ASSERT_EQ(::chown(dir.path().c_str(), other, other), 0);
  Process process(program("busy_alloc"), "ready");
  const Outcome refused = run(enable_command(process.pid()));
  EXPECT_EQ(refused.status.code(), 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("belongs to user 12345"), HasSubstr("hint:")));
  EXPECT_EQ(run_through(process).status.code(), 0);
  EXPECT_FALSE(fs::exists(ring_of(process.pid())));
}

TEST_F(EnableLive, ARingDoesNotLandWhereOthersWatch) {
  covers("enable", "a program without OCAML_RUNTIME_EVENTS_DIR: its ring is in the directory of HOME");
  Command command = program("busy_alloc", {"2000"});
  const fs::path home = dir / "home";
  fs::create_directory(home);
  fs::permissions(home, fs::perms::owner_all);
  command.env.erase("OCAML_RUNTIME_EVENTS_DIR");
  command.env["HOME"] = home;
  command.directory = dir.path();
  Process process(command, "ready");
  const Outcome enabled = enable(process);
  EXPECT_EQ(enabled.status.code(), 0) << enabled.err;
  const fs::path name = std::to_string(process.pid()) + ".events";
  EXPECT_THAT(enabled.out, HasSubstr(", ring " + (home / name).native()));
  EXPECT_FALSE(fs::exists(dir / name));
  EXPECT_EQ(run_through(process).status.code(), 0);
  EXPECT_FALSE(fs::exists(home / name)) << "the program removes it";
}

TEST_F(EnableLive, ADirectoryThatOthersMayReadIsRefusedUnlessAllowed) {
  covers("enable", "a directory that others may read or search, and could lock");
  Command command = program("busy_alloc", {"10000"});
  const fs::path home = dir / "home";
  fs::create_directory(home);
  fs::permissions(home, fs::perms(0711));
  for (const char* name : {"OCAML_RUNTIME_EVENTS_DIR", "XDG_RUNTIME_DIR", "TMPDIR", "PWD"}) command.env[name] = "";
  command.env["HOME"] = home;
  Process process(command, "ready");
  const Outcome refused = run(enable_command(process.pid()));
  EXPECT_EQ(refused.status.code(), 1);
  EXPECT_THAT(refused.err, HasSubstr("others may read or search it, so they could lock it (--allow-readable)"));
  EXPECT_EQ(enable(process, {"--allow-readable"}).status.code(), 0);
  EXPECT_EQ(run_through(process).status.code(), 0);
}

TEST_F(EnableLive, ARingWithoutAnAbsolutePathIsRefused) {
  covers("enable", "a program that knows no absolute path of a directory");
  for (const bool is_relative : {true, false}) {
    Command command = program("busy_alloc");
    for (const char* name : {"OCAML_RUNTIME_EVENTS_DIR", "HOME", "XDG_RUNTIME_DIR", "TMPDIR", "PWD"})
      command.env[name] = is_relative ? "." : "";
    Process process(command, "ready");
    const Outcome refused = run(enable_command(process.pid()));
    EXPECT_EQ(refused.status.code(), 1);
    EXPECT_THAT(refused.err, AllOf(HasSubstr(is_relative ? ". is a relative path" : "no absolute path of a directory"),
                                   HasSubstr("hint:")));
    EXPECT_EQ(run_through(process).status.code(), 0);
  }
}

TEST_F(EnableLive, WhoRunsForMicrosecondsIsSwitchedOn) {
  covers("enable", "a program that runs for microseconds at a time");
  Process process(program("dozing", {"300"}), "ready");
  process.go();
  EXPECT_THAT(run(enable_command(process.pid())).out, HasSubstr("events on after"));
}

TEST_F(EnableLive, ARingOfItsOwnIsLeftAloneByARun) {
  covers("enable", "`--enable`: a program that was started with events on");
  Command command = awaiting();
  command.env["OCAML_RUNTIME_EVENTS_START"] = "1";
  Process process(command, "ready");
  Tracer tracer({"--enable", "-p", std::to_string(process.pid())});
  process.go();
  process.lines_until("done");
  tracer.stop();
  EXPECT_THAT(ps_line(process.pid()), AllOf(HasSubstr(" active "), Not(HasSubstr(" yes "))));
  EXPECT_TRUE(fs::exists(ring_of(process.pid())));
  EXPECT_EQ(run_through(process).status.code(), 0);
}

TEST_F(EnableLive, ARingOfItsOwnIsPausedAndResumed) {
  covers("enable", "`disable` of a program that was started with events on");
  Command command = awaiting();
  command.env["OCAML_RUNTIME_EVENTS_START"] = "1";
  Process process(command, "ready");
  EXPECT_THAT(disable(process).out, HasSubstr("events off"));
  EXPECT_THAT(ps_line(process.pid()), HasSubstr(" paused "));
  EXPECT_TRUE(fs::exists(ring_of(process.pid())));
  EXPECT_THAT(disable(process).out, HasSubstr("off already"));
  EXPECT_THAT(run(enable_command(process.pid())).out, HasSubstr("events resumed"));
  EXPECT_THAT(ps_line(process.pid()), HasSubstr(" active "));
  EXPECT_THAT(run(enable_command(process.pid())).out, HasSubstr("on already"));
  EXPECT_EQ(run_through(process).status.code(), 0);
}

TEST_F(EnableLive, NoOtherOfAProgramThatCameToHarm) {
  covers("enable", "a program that dies when it was switched on: no other of its binary, also by later runs");
  Command command = awaiting("await");
  const fs::path copy = dir / "copy";
  fs::copy_file(command.argv.front(), copy);
  command.argv.front() = copy;
  Process process(command, "ready"), other(command, "ready");
  Tracer tracer({"--enable", "-p", std::to_string(process.pid())});
  process.go();
  process.lines_until("done");
  process.signal(SIGSEGV);
  process.wait();
  struct stat file{};
  ASSERT_EQ(::stat(copy.c_str(), &file), 0);
  const fs::path entry =
      fmt::format("/run/rtev-bpf/suspects/{}-{}-{}", std::uint64_t{file.st_dev}, file.st_ino, ::getuid());
  const auto deadline = std::chrono::steady_clock::now() + wait_timeout;
  while (!fs::exists(entry)) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  tracer.stop();
  const Outcome refused = enable(other);
  EXPECT_EQ(refused.status.code(), 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("came to harm"), HasSubstr("remove " + entry.native())));
  EXPECT_TRUE(fs::remove(entry));
  EXPECT_THAT(run(enable_command(other.pid())).out, HasSubstr("events on after"));
}

TEST_F(EnableLive, ASleepingProgramIsNotTouched) {
  covers("enable", "asleep");
  Process process(program("busy_alloc"), "ready");
  const Outcome outcome = run(enable_command(process.pid(), {"-d", "200ms"}));
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, HasSubstr("did not run, or"));
  EXPECT_FALSE(fs::exists(ring_of(process.pid())));
  EXPECT_EQ(run_through(process).status.code(), 0);
}

TEST_F(EnableLive, DoctorPrintsWhatItTakes) {
  covers("enable", "`doctor -p`, and `ps` shows who was switched on");
  Process process(awaiting(), "ready");
  const auto doctor = [&] { return run_tool({"doctor", "-p", std::to_string(process.pid())}); };
  EXPECT_EQ(doctor().status.code(), 0);
  EXPECT_THAT(doctor().out, AllOf(HasSubstr("events can be switched on"), HasSubstr("directory of the ring")));
  EXPECT_THAT(ps_line(process.pid()), HasSubstr(" none - "));
  ASSERT_EQ(enable(process).status.code(), 0);
  EXPECT_THAT(ps_line(process.pid()), HasSubstr(" active yes "));
  const rlimit small{.rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY};
  Process limited(awaiting(), "ready");
  ASSERT_EQ(::prlimit(limited.pid(), RLIMIT_FSIZE, &small, nullptr), 0);
  const Outcome outcome = run_tool({"doctor", "-p", std::to_string(limited.pid())});
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.out, HasSubstr("MISSING"));
}

TEST_F(EnableLive, AnUnwritableDirectoryIsRefused) {
  covers("enable", "directory that the program may not write to");
  const fs::path closed = dir / "closed";
  fs::create_directory(closed);
  Command command = program("busy_alloc");
  command.env["OCAML_RUNTIME_EVENTS_DIR"] = closed;
  command.user = nobody;
  fs::permissions(dir.path(), fs::perms::all | fs::perms::sticky_bit);
  Process process(command, "ready");
  const Outcome outcome = run(enable_command(process.pid()));
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("directory of the ring"), HasSubstr("Permission denied"), HasSubstr("hint:")));
  EXPECT_EQ(run_through(process).status.code(), 0);
}

TEST_F(EnableLive, AnotherUsersProgramIsSwitchedOn) {
  covers("enable", "program of another user");
  ASSERT_EQ(::chown(dir.path().c_str(), nobody, nobody), 0);
  Command command = awaiting();
  command.user = nobody;
  Process process(command, "ready");
  EXPECT_EQ(enable(process).status.code(), 0);
  struct stat status{};
  ASSERT_EQ(::stat(ring_of(process.pid()).c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, nobody);
}

TEST_F(EnableLive, ASmallLimitOfFilesIsRefused) {
  covers("enable", "RLIMIT_FSIZE");
  Process process(program("busy_alloc"), "ready");
  const rlimit small{.rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(::prlimit(process.pid(), RLIMIT_FSIZE, &small, nullptr), 0);
  const Outcome outcome = run(enable_command(process.pid()));
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, HasSubstr("RLIMIT_FSIZE"));
  EXPECT_EQ(run_through(process).status.code(), 0);
}

TEST_F(EnableLive, RefusalsSayOfWhatAndWhy) {
  Process other({.argv = {"sleep", "600"}}), asleep(program("busy_alloc"), "ready");
  Process ended({.argv = {"true"}});
  ended.wait();
  const struct {
    pid_t pid;
    const char* why;
  } cases[] = {{other.pid(), "it is no OCaml 5 program"}, {ended.pid(), "no such process"}};
  for (const auto& [pid, why] : cases) {
    for (const char* const command : {"enable", "disable"}) {
      const Outcome outcome = run({.argv = {tool(), command, "-p", std::to_string(pid)}});
      EXPECT_EQ(outcome.status.code(), 1);
      EXPECT_THAT(outcome.err, AllOf(HasSubstr(" the events of " + std::to_string(pid)), HasSubstr(why),
                                     HasSubstr("hint: rtev-bpf ps lists")));
    }
  }
  Command by_user = enable_command(asleep.pid());
  by_user.user = nobody;
  const Outcome outcome = run(by_user);
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("CAP_SYS_PTRACE"), HasSubstr("hint: run as root")));
}

/// OCaml's runtime would abort the first, hang in the second, and write beyond the end of the third one's file.
TEST_F(EnableLive, RingsThatTheRuntimeCannotMakeAreRefused) {
  covers("enable", "rings of a size that OCaml's runtime cannot make (`e`, `d` of `OCAMLRUNPARAM`)");
  for (const char* const parameters : {"e=21", "e=2", "e=18,d=2048"}) {
    Command command = program("busy_alloc");
    command.env["OCAMLRUNPARAM"] = parameters;
    Process process(command, "ready");
    const Outcome outcome = run(enable_command(process.pid()));
    EXPECT_EQ(outcome.status.code(), 1);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("OCAMLRUNPARAM"), HasSubstr("hint:"))) << parameters;
    EXPECT_EQ(run_through(process).status.code(), 0) << parameters;
    EXPECT_FALSE(fs::exists(ring_of(process.pid())));
  }
}

TEST_F(EnableLive, SystemThreadsGoOnTakingTurns) {
  covers("enable", "systhreads");
  Process process(program("systhreads", {"8"}), "ready");
  Process enabling(enable_command(process.pid(), {"-d", "2s"}));
  const Outcome outcome = run_through(process);
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  enabling.wait();  // the program may have been quicker
}

TEST_F(EnableLive, ManyShortProgramsKeepTheirResults) {
  covers("enable", "programs that end meanwhile");
  for (int round = 0; round < 10; ++round) {
    Process process(program("domains"), "ready");
    Process enabling(enable_command(process.pid(), {"-d", "1s"}));
    const Outcome outcome = run_through(process);
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    const Outcome enabled = enabling.wait();
    EXPECT_FALSE(enabled.status.signal()) << enabled.err;
    EXPECT_FALSE(has_journal_entry(process.pid()));
  }
}

/// Which processes of `enable` are killed.
enum class Killed : std::uint8_t { command, enabler, guardian, all };

class KilledEnableLive : public EnableLive, public ::testing::WithParamInterface<std::pair<const char*, Killed>> {};

TEST_P(KilledEnableLive, TheHookIsPutBack) {
  covers("enable", std::string("SIGKILL of ") + GetParam().first + " at any moment");
  constexpr int rounds = 16;  // scripts/soak-enable tries many more
  constexpr std::chrono::milliseconds last_moment{20};
  for (int round = 0; round < rounds; ++round) {
    // Threads take turns by the hook: without it they would not end. A program without them does not end if it is
    // left with a request to call the hook.
    const Variety without_threads{.ocaml = "5.1", .build = {.kind = "native", .what = "native"}};
    const bool has_threads = round % 2 == 0 || !fs::exists(without_threads.program());
    Process process(
        has_threads ? program("systhreads", {"8"})
                    : Command{.argv = {without_threads.program()}, .env = {{"OCAML_RUNTIME_EVENTS_DIR", dir.path()}}},
        "ready");
    Process enabling(enable_command(process.pid(), {"-d", "1s"}));
    process.go();
    // The kill comes later each time. How long the processes take to get there differs, too.
    std::this_thread::sleep_for(last_moment * round / rounds);
    std::vector<pid_t> enablers = children_of(enabling.pid()), guardians;
    for (const pid_t enabler : enablers) std::ranges::copy(children_of(enabler), std::back_inserter(guardians));
    const Killed killed = GetParam().second;
    if (killed == Killed::command || killed == Killed::all) enabling.signal(SIGKILL);
    if (killed == Killed::enabler || killed == Killed::all)
      for (const pid_t pid : enablers) ::kill(pid, SIGKILL);
    if (killed == Killed::guardian || killed == Killed::all)
      for (const pid_t pid : guardians) ::kill(pid, SIGKILL);
    // What all of them have left is put back by the next one.
    if (killed == Killed::all) run(enable_command(process.pid(), {"--dry-run"}));
    const Outcome outcome = run_through(process);
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    enabling.wait();
    if (killed == Killed::all) {
      EXPECT_FALSE(has_journal_entry(process.pid()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Processes, KilledEnableLive,
                         ::testing::Values(std::pair("the command", Killed::command),
                                           std::pair("the enabler", Killed::enabler),
                                           std::pair("the guardian", Killed::guardian),
                                           std::pair("all of them", Killed::all)),
                         [](const auto& test) {
                           std::string name;
                           for (const char* letter = test.param.first; *letter != 0; ++letter)
                             if (*letter != ' ') name += *letter;
                           return name;
                         });

}  // namespace
}  // namespace rtev::test
