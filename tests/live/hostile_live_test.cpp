// SPDX-License-Identifier: MIT
// Programs that attack the tracer, beside an honest program that must lose nothing.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "live/consumption.hpp"
#include "live/harness.hpp"

namespace rtev::test {
namespace {

using std::chrono_literals::operator""ms, std::chrono_literals::operator""s;

/// A program that attacks, and what a trace says of it.
struct Attack {
  const char* label;
  const char* name;  ///< of rtev-attack; empty: a program of tests/ocaml does it
  void (*check)(const Trace& trace, pid_t attacker);
  const char* ocaml = "";  ///< that program, or one that is copied to the directory of the attack
};

std::ostream& operator<<(std::ostream& out, const Attack& attack) {
  return out << attack.label;
}

class AttackLive : public LiveTest, public ::testing::WithParamInterface<Attack> {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    if (std::string_view(GetParam().name).starts_with("hung-") && !fs::exists("/dev/fuse")) {
      if (std::getenv("CI") != nullptr) FAIL() << "there is no /dev/fuse";
      GTEST_SKIP() << "there is no /dev/fuse";
    }
    fs::create_directory(attack_dir_);
  }
  void TearDown() override { fs::remove_all(attack_dir_); }

  Command attack() const {
    const Attack& attack = GetParam();
    if (*attack.name == '\0') return program(attack.ocaml);
    if (*attack.ocaml != '\0') fs::copy_file(ocaml_program(attack.ocaml), attack_dir_ / "program");
    return {.argv = {RTEV_ATTACK, attack.name, attack_dir_}};
  }

 private:
  /// On tmpfs: disks would be a bottleneck of the attack.
  const fs::path attack_dir_ = "/dev/shm/rtev-test." + std::to_string(::getpid());
};

constexpr int all_beacons = std::numeric_limits<int>::max();

/// Reads beacons of an honest program, up to the one with this number or the last, and calls `on_beacon`.
void read_beacons(Process& tracer, int last, const std::function<void(int number, std::uint64_t delay_ns)>& on_beacon) {
  for (int number = 0; number >= 0 && number < last;) {
    const Json beacon = Json::parse(tracer.line_with(R"("name":"beacon")"));
    const std::uint64_t now = monotonic_ns();
    number = beacon.value("value", last);
    on_beacon(number, now - std::min(now, beacon.value("ts", std::uint64_t{0})));
  }
}

/// With a ring of four times the usual size, which a program of 300,000 events/s fills in 0.3 s: a tracer that is held
/// up for longer loses words. Other virtual machines may take the CPUs for less.
Command with_large_ring(Command program) {
  program.env["OCAMLRUNPARAM"] = "e=18";
  return program;
}

/// The machine may keep the test itself from reading in time, now and then.
std::chrono::nanoseconds usual_delay(std::vector<std::uint64_t> delays) {
  std::ranges::sort(delays);
  return std::chrono::nanoseconds(delays.at(delays.size() * 95 / 100));
}

/// The tracer begins and ends while the attack goes on: it must not need the attacker for that.
TEST_P(AttackLive, AnHonestProgramLosesNothing) {
  // docs/limitations.md states this bound.
  constexpr double most_cpus = 1.5;
  constexpr std::uint64_t most_memory = 256u << 20;
  // A usual limit (ulimit -n) of a process.
  constexpr std::size_t most_descriptors = 1024;
  constexpr int rate = 300'000, milliseconds = 2500;
  constexpr int beacons_of_a_sample = 25;

  Process attacker(attack(), "ready");
  Tracer tracer({"--events", "process,beacon"});
  Process honest(with_large_ring(with_events("steady", {std::to_string(rate), std::to_string(milliseconds)})), "ready");
  const auto cpu_before = cpu_of(tracer.process().pid());
  const std::uint64_t start_ns = monotonic_ns();
  honest.go();
  std::vector<std::uint64_t> delays;
  std::uint64_t memory = 0;
  read_beacons(tracer.process(), all_beacons, [&](int number, std::uint64_t delay_ns) {
    delays.push_back(delay_ns);
    if (number % beacons_of_a_sample == 1) memory = std::max(memory, memory_of(tracer.process().pid()));
  });
  const std::chrono::duration<double> elapsed = std::chrono::nanoseconds(monotonic_ns() - start_ns);
  const double cpus = (cpu_of(tracer.process().pid()) - cpu_before) / elapsed;
  RecordProperty("cpu_percent", static_cast<int>(100 * cpus));
  EXPECT_LT(cpus, most_cpus);
  std::istringstream report(honest.line_with("done "));
  std::uint64_t written_beacons = 0, written_events = 0;
  report.ignore(5) >> written_beacons >> written_events;
  EXPECT_EQ(run_through(honest).status.code(), 0);
  RecordProperty("memory_mb", static_cast<int>(memory >> 20));
  EXPECT_GT(memory, 0u);
  EXPECT_LT(memory, most_memory);
  EXPECT_LT(descriptors_of(tracer.process().pid()), most_descriptors);

  tracer.process().signal(SIGTERM);
  const Outcome outcome = tracer.process().wait();
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  attacker.go_until("done");

  const Trace trace = Trace::parse(outcome.out);
  const auto words = trace.words(honest.pid());
  ASSERT_TRUE(words.contains("delivered"));
  EXPECT_GE(words.at("delivered"), 3 * (written_beacons + written_events));
  for (const char* missing : {"lost", "before_attach", "corrupt", "unread"})
    EXPECT_EQ(words.at(missing), 0u) << missing;
  EXPECT_EQ(trace.of(honest.pid(), "user").size(), written_beacons);
  EXPECT_THAT(trace.actions(honest.pid()), ElementsAre(AnyOf("exec", "found"), "ring", "stop", "exit"))
      << "found by a scan where the record of its exec waits for an inspection";
  for (const char* kind : {"exec", "fork", "exit"}) EXPECT_EQ(trace.summary["drops"][kind], 0) << kind;
  RecordProperty("delay_ms", static_cast<int>(usual_delay(delays) / 1ms));
  GetParam().check(trace, attacker.pid());
}

/// Sums of the words of all programs with this name.
std::map<std::string, std::uint64_t> words_of(const Trace& trace, const std::string& comm) {
  std::map<std::string, std::uint64_t> sums;
  for (const Json& process : trace.summary["processes"]) {
    if (process["comm"] != comm) continue;
    for (const auto& [kind, words] : process["words"].items()) sums[kind] += words.get<std::uint64_t>();
  }
  return sums;
}

/// Missed rings by the name of the program that is charged with them.
std::map<std::string, int> missed_rings(const Trace& trace) {
  std::map<std::string, int> sums;
  for (const Json& process : trace.summary["processes"])
    if (const int missed = process.value("rings_missed", 0); missed > 0)
      sums[process["comm"].get<std::string>()] += missed;
  return sums;
}
int missed_by_attackers(const Trace& trace) {
  return missed_rings(trace)["rtev-attack"];
}

/// All missed rings are charged to the attackers. If not, the message has the other names.
void expect_only_attackers_missed(const Trace& trace) {
  EXPECT_EQ(missed_by_attackers(trace), trace.summary["rings_missed"]) << ::testing::PrintToString(missed_rings(trace));
}

// What the summary says of the attacker.

void is_harmless(const Trace& /*trace*/, pid_t /*attacker*/) {}

void has_no_ring(const Trace& trace, pid_t attacker) {
  EXPECT_TRUE(trace.process(attacker).empty());
}

void wrote_what_is_invalid(const Trace& trace, pid_t /*attacker*/) {
  EXPECT_GT(words_of(trace, "rtev-attack")["corrupt"], 0u);
  const auto was_left_alone = [](const Json& process) {
    return process["comm"] == "rtev-attack" && process.contains("left_alone");
  };
  EXPECT_TRUE(std::ranges::any_of(trace.summary["processes"], was_left_alone));
}

/// What it claimed is not in the totals, but for what the CPUs can have written.
void wrote_what_is_impossible(const Trace& trace, pid_t attacker) {
  wrote_what_is_invalid(trace, attacker);
  EXPECT_LT(words_of(trace, "rtev-attack")["written"], std::uint64_t{1} << 40);
}

void wrote_too_much(const Trace& trace, pid_t attacker) {
  EXPECT_GT(trace.words(attacker)["lost"], 0u);
}

void was_left_alone(const Trace& trace, pid_t attacker) {
  wrote_too_much(trace, attacker);
  EXPECT_GT(trace.process(attacker)["left_alone"]["times"], 0);
}

void announced_too_much(const Trace& trace, pid_t attacker) {
  EXPECT_EQ(trace.process(attacker)["comm"], "rtev-attack");
  EXPECT_GT(trace.summary["drops"]["ring"].get<int>() + trace.summary["rings_missed"].get<int>(), 0);
  expect_only_attackers_missed(trace);
  ASSERT_TRUE(trace.summary.contains("announcers"));
  const Json& announcers = trace.summary["announcers"];
  const auto most = std::ranges::max_element(announcers, {}, [](const Json& one) { return one["dropped"].get<int>(); });
  EXPECT_EQ((*most)["pid"], attacker);
  EXPECT_EQ((*most)["comm"], "rtev-attack");
  EXPECT_LE((*most)["dropped"], trace.summary["drops"]["ring"]);
}

/// Most of what it had saved was not.
void had_too_much_saved(const Trace& trace, pid_t attacker) {
  EXPECT_GT(trace.summary["drops"]["save"], 0);
  const Json& announcers = trace.summary["announcers"];
  const auto is_attacker = [&](const Json& one) { return one["pid"] == attacker && one["dropped"] > 0; };
  EXPECT_TRUE(std::ranges::any_of(announcers, is_attacker));
}

void wrote_in_many_programs(const Trace& trace, pid_t /*attacker*/) {
  EXPECT_GT(words_of(trace, "rtev-attack")["delivered"], 0u);
}

void created_too_many_rings(const Trace& trace, pid_t attacker) {
  EXPECT_GT(trace.words(attacker)["delivered"], 0u);
  EXPECT_GT(trace.summary["rings_missed"], 0);
  EXPECT_GT(missed_by_attackers(trace), 0);
}

/// Some of its programs were read, others not.
void had_too_much_mapped(const Trace& trace, pid_t /*attacker*/) {
  std::set<std::string> states;
  for (const Json& process : trace.summary["processes"])
    if (process["comm"] == "rtev-attack") states.insert(process["ring"]);
  EXPECT_THAT(states, IsSupersetOf({"active", "unreadable"}));
}

/// Each of its programs has the words that it wrote, or what was seen of them.
void wrote_under_names_that_control_terminals(const Trace& trace, pid_t /*attacker*/) {
  constexpr std::uint64_t words_of_a_program = 2 * 8192;
  std::uint64_t delivered = 0;
  for (const Json& process : trace.summary["processes"]) {
    if (!process["comm"].get<std::string>().starts_with("\x1b[2J")) continue;
    EXPECT_LE(process["words"]["written"], words_of_a_program);
    delivered += process["words"]["delivered"].get<std::uint64_t>();
  }
  EXPECT_GT(delivered, 0u);
}

/// What came before the new header was read, and nothing after it.
void changed_the_headers_of_its_rings(const Trace& trace, pid_t /*attacker*/) {
  auto words = words_of(trace, "rtev-attack");
  EXPECT_GT(words["delivered"], 0u);
  EXPECT_EQ(words["corrupt"], 0u);
  EXPECT_GT(missed_by_attackers(trace), 0);
  expect_only_attackers_missed(trace);
}

/// A ring whose lease ended while it was opened may have been read, with its only event.
void let_nobody_open_its_rings(const Trace& trace, pid_t /*attacker*/) {
  constexpr std::uint64_t words_of_a_ring = 2;
  const auto read = words_of(trace, "rtev-attack")["written"] / words_of_a_ring;
  EXPECT_GT(missed_by_attackers(trace), 10 * read);
  expect_only_attackers_missed(trace);
}

/// The second program of a process has none of the words that the first one wrote into the same file. Its file is no
/// mark: that of the first one may be looked up too late.
void ran_programs_one_after_the_other(const Trace& trace, pid_t /*attacker*/) {
  constexpr std::uint64_t words_of_the_second = 2 * 1000;
  std::map<pid_t, std::vector<std::uint64_t>> written;
  for (const Json& process : trace.summary["processes"])
    if (process["comm"] == "rtev-attack") written[process["pid"]].push_back(process["words"]["written"]);
  int read = 0;
  for (const auto& [pid, programs] : written) {
    if (programs.size() < 2) continue;
    const std::uint64_t second = std::ranges::min(programs);
    EXPECT_LE(second, words_of_the_second) << pid;
    read += second > 0;
  }
  EXPECT_GT(read, 0);
}

void ended_with_full_rings(const Trace& trace, pid_t /*attacker*/) {
  EXPECT_GT(words_of(trace, "rtev-attack")["delivered"], 0u);
}

void ran_many_copies(const Trace& trace, pid_t /*attacker*/) {
  EXPECT_GT(words_of(trace, "program")["delivered"], 0u);
}

/// The attacker's own programs lose no words either. The attack delays probes: on a busy host a few programs end before
/// they are probed.
void ran_programs_that_lose_no_words(const Trace& trace, pid_t /*attacker*/) {
  auto words = words_of(trace, "program");
  EXPECT_GT(words["written"], 0u);
  EXPECT_EQ(words["delivered"] + words["before_attach"], words["written"]);
  const auto& processes = trace.summary["processes"];
  const auto read = std::ranges::count_if(
      processes, [](const Json& process) { return process["comm"] == "program" && process["words"]["written"] > 0; });
  EXPECT_GE(read, 10 * missed_rings(trace)["program"]);
  EXPECT_EQ(missed_rings(trace)["program"], trace.summary["rings_missed"])
      << ::testing::PrintToString(missed_rings(trace));
}

void paused_all_the_time(const Trace& trace, pid_t attacker) {
  EXPECT_THAT(trace.actions(attacker), IsSupersetOf({"pause", "resume"}));
}

void wrote_an_honest_ring(const Trace& trace, pid_t attacker) {
  EXPECT_EQ(trace.process(attacker)["ring"], "active");
  EXPECT_GT(trace.words(attacker)["delivered"], 0u);
}

void is_on_a_file_system_that_is_not_read(const Trace& trace, pid_t attacker) {
  EXPECT_GE(trace.process(attacker)["rings_missed"], 1);
  EXPECT_EQ(trace.action(attacker, "unreadable")["reason"], "file system");
  EXPECT_EQ(trace.process(attacker)["ring"], "unreadable");
}

/// It is named, although it may not be an OCaml program.
void is_named_as_silent(const Trace& trace, pid_t /*attacker*/) {
  const auto is_silent = [](const Json& process) {
    return process["comm"] == "rtev-attack" && process["ring"] == "unreadable" && process["rings_missed"] >= 1;
  };
  EXPECT_TRUE(std::ranges::any_of(trace.summary["processes"], is_silent));
}

/// Some of what it announced was not looked at any more.
void did_not_answer(const Trace& trace, pid_t /*attacker*/) {
  EXPECT_GT(trace.summary["rings_missed"], 0);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, AttackLive,
    ::testing::Values(
        Attack{"MutatingWriter", "mutating-writer", wrote_what_is_invalid},
        Attack{"NameFlood", "name-flood", wrote_too_much},
        Attack{"ShortLivedNames", "short-lived-names", wrote_under_names_that_control_terminals},
        Attack{"GrowingHeader", "growing-header", changed_the_headers_of_its_rings},
        Attack{"LeasedRing", "leased-ring", let_nobody_open_its_rings},
        Attack{"ThreadsThatExec", "threads-that-exec", ran_programs_one_after_the_other},
        Attack{"SparseRings", "sparse-rings", wrote_what_is_invalid},
        Attack{"HugeIndices", "huge-indices", wrote_what_is_impossible},
        Attack{"ManyDomains", "many-domains", wrote_an_honest_ring},
        Attack{"SmallRings", "small-rings", wrote_too_much}, Attack{"RingFlood", "ring-flood", announced_too_much},
        Attack{"ForkStorm", "fork-storm", has_no_ring}, Attack{"ExecFlood", "exec-flood", wrote_in_many_programs},
        Attack{"SaveFlood", "save-flood", wrote_in_many_programs},
        Attack{"TeardownFlood", "teardown-flood", had_too_much_saved},
        Attack{"LargeRings", "large-rings", wrote_in_many_programs},
        Attack{"ManyMappings", "many-mappings", created_too_many_rings},
        Attack{"ManySections", "many-sections", has_no_ring},
        Attack{"EndingRings", "ending-rings", ended_with_full_rings}, Attack{"MemfdRing", "memfd-ring", has_no_ring},
        Attack{"PunchedRing", "punched-ring", was_left_alone}, Attack{"CollapsedRing", "collapsed-ring", is_harmless},
        Attack{"HugeRings", "huge-rings", had_too_much_mapped},
        Attack{"TouchedProgram", "touched-program", ran_many_copies, "hello"},
        Attack{"ManyPrograms", "many-programs", ran_many_copies, "steady"},
        Attack{"MappedProgram", "mapped-program", ran_programs_that_lose_no_words, "steady"},
        Attack{"LongForks", "long-forks", ran_programs_that_lose_no_words, "steady"},
        Attack{"ManyMounts", "many-mounts", wrote_in_many_programs},
        Attack{"PauseFlood", "", paused_all_the_time, "restless"},
        Attack{"HungRing", "hung-ring", is_on_a_file_system_that_is_not_read},
        Attack{"HungDetachedRing", "hung-detached-ring", did_not_answer},
        Attack{"HungProgram", "hung-program", wrote_an_honest_ring},
        Attack{"HungDetachedProgram", "hung-detached-program", did_not_answer},
        Attack{"HungDirectory", "hung-directory", wrote_an_honest_ring},
        Attack{"HungMemory", "hung-memory", is_named_as_silent},
        Attack{"HungMapping", "hung-mapping", ran_programs_that_lose_no_words, "steady"}),
    by_label);

struct OutputAttack {
  const char* label;
  const char* name;    ///< of rtev-attack
  const char* events;  ///< of the trace
};

std::ostream& operator<<(std::ostream& out, const OutputAttack& attack) {
  return out << attack.label;
}

/// More than the output takes.
class OutputAttackLive : public LiveTest, public ::testing::WithParamInterface<OutputAttack> {};

TEST_P(OutputAttackLive, AnHonestProgramLosesNothing) {
  Process attacker({.argv = {RTEV_ATTACK, GetParam().name, dir.path()}}, "ready");
  // Only what is of interest is read by the test: the rest is gigabytes.
  constexpr const char* pipeline = R"("$0" -q -f jsonl --events "$1" -d 7s |)"
                                   R"( grep --line-buffered -F -e '"name":"beacon"' -e '"type":"summary"')";
  std::optional<Process> tracer;
  start_ready(tracer, {.argv = {"sh", "-c", pipeline, tool(), GetParam().events}});
  Process honest(with_large_ring(with_events("steady", {"300000", "2500"})), "ready");
  honest.go();
  std::vector<std::uint64_t> delays;
  read_beacons(*tracer, all_beacons, [&](int /*number*/, std::uint64_t delay_ns) { delays.push_back(delay_ns); });
  honest.line_with("done ");
  EXPECT_EQ(run_through(honest).status.code(), 0);
  const Json summary = Json::parse(tracer->line_with(R"("type":"summary")"));
  tracer->wait();
  attacker.go_until("done");
  const auto is_honest = [&](const Json& process) { return process["pid"] == honest.pid(); };
  const Json& processes = summary["processes"];
  const auto found = std::ranges::find_if(processes, is_honest);
  ASSERT_NE(found, processes.end());
  EXPECT_EQ((*found)["words"]["lost"], 0);
  EXPECT_EQ((*found)["words"]["unread"], 0);
  RecordProperty("delay_ms", static_cast<int>(usual_delay(delays) / 1ms));
}

/// Names of control characters make an event six times as long to print.
INSTANTIATE_TEST_SUITE_P(Programs, OutputAttackLive,
                         ::testing::Values(OutputAttack{"LongNames", "long-names", "process,beacon*"},
                                           OutputAttack{"SwitchFlood", "switch-flood", "process,switch,wakeup,beacon"}),
                         by_label);

class EndBesideAttackLive : public AttackLive {};

/// The end of a trace waits for inspections, while programs go on writing.
TEST_P(EndBesideAttackLive, ABusyProgramLosesNothing) {
  constexpr int rate = 500'000, milliseconds = 30'000, beacons = 100;
  Process attacker(attack(), "ready");
  Tracer tracer({"--events", "process,beacon"});
  Process honest(with_large_ring(with_events("steady", {std::to_string(rate), std::to_string(milliseconds)})), "ready");
  honest.go();
  read_beacons(tracer.process(), beacons, [](int /*number*/, std::uint64_t /*delay_ns*/) {});
  const Trace trace = tracer.stop();
  attacker.go_until("done");
  const auto words = trace.words(honest.pid());
  EXPECT_GT(words.at("delivered"), 0u);
  EXPECT_EQ(words.at("lost"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Programs, EndBesideAttackLive,
                         ::testing::Values(Attack{"ManyPrograms", "many-programs", is_harmless, "steady"}), by_label);

class CommandBesideAttackLive : public AttackLive {};

/// A command's end looks for processes that have the command's environment.
TEST_P(CommandBesideAttackLive, TheTraceOfACommandEnds) {
  Process attacker(attack(), "ready");
  // Its directory of rings stays if it is unknown who uses it.
  Process tracer(
      {.argv = {tool(), "-q", "-f", "jsonl", "--", ocaml_program("hello")}, .env = {{"TMPDIR", dir.path()}}});
  const Outcome outcome = run_through(tracer);
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  attacker.go_until("done");
}

INSTANTIATE_TEST_SUITE_P(Programs, CommandBesideAttackLive,
                         ::testing::Values(Attack{"HungProgram", "hung-program", is_harmless},
                                           Attack{"HungDirectory", "hung-directory", is_harmless},
                                           Attack{"HungMemory", "hung-memory", is_harmless}),
                         by_label);

}  // namespace
}  // namespace rtev::test
