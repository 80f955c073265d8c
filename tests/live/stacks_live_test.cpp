// SPDX-License-Identifier: MIT
// Stacks of real OCaml programs in recordings and reports: they are complete, and the shares are right.

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "base/clock.hpp"
#include "live/consumption.hpp"
#include "live/harness.hpp"
#include "live/place.hpp"
#include "live/variety.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

using std::chrono_literals::operator""ms, std::chrono_literals::operator""s;

struct Build {
  std::string ocaml;
  std::string kind;  ///< of a program of tests/variety/build: "native"
  std::string work;  ///< its argument
  std::string label() const { return ocaml + "_" + kind + "_" + work; }
};

std::vector<Build> all_builds() {
  std::vector<Build> all;
  for (const char* const ocaml : {"5.1", "5.3", "5.4"})
    for (const char* const work : {"recursion", "digest", "minor", "major", "fibers", "callback", "noalloc", "float",
                                   "exceptions", "domains", "systhreads", "sleep"})
      all.push_back({ocaml, "native", work});
  for (const char* const ocaml : {"5.1", "5.3", "5.4"})
    for (const char* const work : {"recursion", "digest", "fibers", "noalloc"})
      all.push_back({ocaml, "stripped_static", work});
  // Fibers crash with the shared runtime, untraced, too.
  for (const char* const work : {"recursion", "digest", "noalloc", "sleep"}) {
    all.push_back({"5.3", "shared", work});
    all.push_back({"5.4", "shared", work});  // stripped
  }
  for (const char* const kind : {"static", "no_pie", "stripped"})
    for (const char* const work : {"recursion", "fibers", "noalloc", "sleep"}) all.push_back({"5.3", kind, work});
  return all;
}

std::string name_of_build(const testing::TestParamInfo<Build>& test) {
  std::string name = test.param.label();
  std::erase(name, '.');
  return name;
}

std::ostream& operator<<(std::ostream& out, const Build& build) {
  return out << build.label();
}

bool is_complete(const Json& sample) {
  if (sample["stack"].empty()) return false;
  const std::string outermost = sample["stack"].back()["kind"];
  return outermost != "unknown" && outermost != "cut";
}

class StacksLive : public LiveTest {
 protected:
  fs::path variety_program(const Build& build) const {
    return Variety{.ocaml = build.ocaml.c_str(), .build = {.kind = "native", .what = ""}}.program().parent_path() /
           ("stacks_" + build.kind);
  }
  /// Skips the test if the program was not built; under CI it fails.
  void need(const Build& build) const {
    if (fs::exists(variety_program(build))) return;
    const std::string obstacle = "no OCaml " + build.ocaml + " was found when the tests were built";
    if (std::getenv("CI") != nullptr) FAIL() << obstacle;
    GTEST_SKIP() << obstacle;
  }
  /// A program with events on, which has said that it is ready.
  Process start(const Strings& argv) const {
    Command command = with_events("stacks", {argv.begin() + 1, argv.end()});
    command.argv = argv;
    return Process(command, "ready");
  }
  /// The samples of a process in a recording of a time.
  std::vector<Json> samples_of(pid_t pid, const std::string& time = "1s", const std::string& rate = "499") const {
    const std::string file = dir / "stacks.fxt";
    const Outcome recorded = run_tool({"record", "--stacks", "--stack-rate", rate, "--off-cpu", "50us", "-q", "-d",
                                       time, "-p", std::to_string(pid), "-o", file});
    EXPECT_EQ(recorded.status.code(), 0) << recorded.err;
    return dumped(file).of(pid, "sample");
  }
};

class StackBuildsLive : public StacksLive, public testing::WithParamInterface<Build> {};

TEST_P(StackBuildsLive, AreComplete) {
  const Build& build = GetParam();
  const fs::path path = variety_program(build);
  need(build);
  if (!fs::exists(path)) return;
  covers("stacks", build.kind + ", " + build.work, build.ocaml);
  const Process process = start({path, build.work});
  const auto samples = samples_of(process.pid());
  std::size_t complete = 0;
  std::string broken;
  for (const Json& sample : samples) {
    if (is_complete(sample))
      ++complete;
    else
      broken += sample["stack"].dump() + "\n";
  }
  ASSERT_GT(samples.size(), 20U);
  // The last instructions of a raise are not followed: in a program that only raises, six of a hundred samples or so.
  // The first sample may come before the code of the program is known.
  const double most = build.work == "exceptions" ? 0.1 : 0.005;
  EXPECT_LE(static_cast<double>(samples.size() - complete), 1 + most * static_cast<double>(samples.size()))
      << broken.substr(0, 4000);
  // The program's own functions are there.
  const auto has_own = [](const Json& sample) {
    return std::ranges::any_of(sample["stack"], [](const Json& frame) {
      return frame["kind"] == "ocaml" && frame.value("function", "").starts_with("Stacks");
    });
  };
  EXPECT_GT(std::ranges::count_if(samples, has_own), static_cast<std::ptrdiff_t>(samples.size() / 3));
}

INSTANTIATE_TEST_SUITE_P(All, StackBuildsLive, testing::ValuesIn(all_builds()), name_of_build);

class StackSharesLive : public StacksLive, public testing::WithParamInterface<Build> {};

TEST_P(StackSharesLive, AreWhatTheProgramSpends) {
  const fs::path path = variety_program(GetParam());
  need(GetParam());
  if (!fs::exists(path)) return;
  covers("stacks", GetParam().kind + ", shares of two functions", GetParam().ocaml);
  const Process process = start({path, GetParam().work});
  const std::string file = dir / "profile.json";
  ASSERT_EQ(
      run_tool({"profile", "--stack-rate", "999", "-q", "-d", "3s", "-p", std::to_string(process.pid()), "-o", file})
          .status.code(),
      0);
  const Json report = Json::parse(read_file(file));
  std::map<std::string, double> total;
  for (const Json& row : report["functions"]) total[row.value("function", "")] += row["total"]["samples"].get<double>();
  const double both = total["Stacks.thrice"] + total["Stacks.once"];
  // Fewer than the rate gives where other programs use the CPU, too: a share of few samples is less exact.
  ASSERT_GT(both, 500) << report.dump().substr(0, 2000);
  const double deviation = std::sqrt(0.75 * 0.25 / both);
  EXPECT_NEAR(total["Stacks.thrice"] / both, 0.75, 5 * deviation) << both << " samples";
}

INSTANTIATE_TEST_SUITE_P(All, StackSharesLive,
                         testing::Values(Build{"5.1", "native", "shares"}, Build{"5.3", "native", "shares"},
                                         Build{"5.4", "native", "shares"}, Build{"5.3", "static", "shares"},
                                         Build{"5.3", "no_pie", "shares"}, Build{"5.3", "stripped", "shares"},
                                         Build{"5.3", "stripped_static", "shares"}, Build{"5.4", "shared", "shares"}),
                         name_of_build);

TEST_F(StacksLive, TheCompilerAsARealProgram) {
  covers("stacks", "`ocamlopt.opt` compiles a module of 3,000 lines", "5.3");
  std::string library = run({.argv = {ocaml_compiler(), "-where"}}).out;
  library.erase(library.find_last_not_of('\n') + 1);
  const std::string module = dir / "camlinternalFormat";
  for (const char* const suffix : {".mli", ".ml"})
    fs::copy_file(fs::path(library) / ("camlinternalFormat" + std::string(suffix)), module + suffix);
  ASSERT_EQ(run({.argv = {ocaml_compiler(), "-w", "-a", "-c", module + ".mli"}}).status.code(), 0);
  const std::string file = dir / "compiler.fxt";
  const Outcome recorded = run_tool({"record", "--stacks", "--stack-rate", "1999", "-q", "-o", file, "--",
                                     ocaml_compiler(), "-w", "-a", "-c", module + ".ml"});
  ASSERT_EQ(recorded.status.code(), 0) << recorded.err;
  std::size_t all = 0, complete = 0;
  for (const Json& sample : dumped(file).of("sample")) {
    if (sample["kind"] != "on-cpu") continue;
    ++all;
    complete += is_complete(sample) ? 1 : 0;
  }
  EXPECT_GT(all, 100U);
  EXPECT_GE(static_cast<double>(complete), 0.97 * static_cast<double>(all));
}

TEST_F(StacksLive, ProgramsInContainersHaveStacks) {
  covers("stacks", "static, fibers, in a container", "5.3");
  const fs::path program = variety_program({.ocaml = "5.3", .kind = "static", .work = ""});
  create_root(dir.path());
  fs::copy_file(program, dir / "image/bin/stacks");
  const Place place = engine_place();
  Command command = in_place(place, dir.path(), {"/bin/stacks", "fibers"});
  command.env["OCAML_RUNTIME_EVENTS_START"] = "1";
  const Process process(command, "ready");
  const auto samples = samples_of(innermost(process.pid()));
  ASSERT_GT(samples.size(), 20U);
  EXPECT_GE(std::ranges::count_if(samples, is_complete) * 100, std::ssize(samples) * 99);
  const auto has_line = [](const Json& sample) {
    return std::ranges::any_of(sample["stack"], [](const Json& frame) {
      return frame.value("function", "") == "Stacks.nested" && frame.value("file", "") == "stacks.ml";
    });
  };
  EXPECT_GT(std::ranges::count_if(samples, has_line), std::ssize(samples) / 3);
}

/// The line of the source that has a text.
unsigned line_with(const std::string& source, std::string_view text) {
  const std::string content = golden("../ocaml/" + source);
  const std::size_t at = content.find(text);
  EXPECT_NE(at, std::string::npos) << text;
  return 1 +
         static_cast<unsigned>(std::count(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

TEST_F(StacksLive, LeavesAndCodeInCHaveLines) {
  const auto hottest = [&](const std::string& work, std::string_view function) {
    const Process process = start({ocaml_program("stacks"), work});
    const Outcome outcome = run_tool({"profile", "-q", "-f", "json", "-d", "2s", "-p", std::to_string(process.pid())});
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    const Json report = Json::parse(outcome.out);
    for (const Json& row : report["functions"])
      if (row.value("function", "") == function) return row;
    ADD_FAILURE() << outcome.out;
    return Json::object();
  };
  const Json count = hottest("shares", "Stacks.count");
  EXPECT_EQ(count.value("file", ""), "stacks.ml");
  EXPECT_EQ(count.value("line", 0U), line_with("stacks.ml", "rec count"));
  const Json spin = hottest("noalloc", "stacks_spin");
  EXPECT_EQ(spin.value("file", ""), "stacks_stubs.c");
  EXPECT_NEAR(spin.value("line", 0U), line_with("stacks_stubs.c", "sin((double)"), 1);
}

TEST_F(StacksLive, PausesNameTheLineOfALateDomain) {
  const Process process = start({ocaml_program("stacks"), "late"});
  const Outcome outcome =
      run_tool({"pauses", "--stacks", "-q", "-f", "json", "-d", "2s", "-p", std::to_string(process.pid())});
  ASSERT_EQ(outcome.status.code(), 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  ASSERT_FALSE(report["pauses"].empty());
  std::size_t named = 0;
  for (const Json& pause : report["pauses"]) {
    const std::string text = pause["blame"]["text"];
    if (text.contains("(caml_md5_string)") && text.contains("Stacks.store")) ++named;
  }
  EXPECT_GE(named, report["pauses"].size() / 2) << report["pauses"][0]["blame"];
}

TEST_F(StacksLive, AllocsNameWhoAllocates) {
  const Process process = start({ocaml_program("stacks"), "minor"});
  const Outcome outcome = run_tool({"allocs", "-q", "-f", "json", "-d", "2s", "-p", std::to_string(process.pid())});
  ASSERT_EQ(outcome.status.code(), 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  ASSERT_FALSE(report["sites"].empty()) << outcome.out;
  EXPECT_THAT(report["sites"][0].value("function", ""), HasSubstr("List")) << report["sites"][0];
}

TEST_F(StacksLive, SleepsSayWhatThreadsWaitFor) {
  const Process process = start({ocaml_program("stacks"), "sleep"});
  const Outcome outcome =
      run_tool({"profile", "--off-cpu", "50us", "-q", "-f", "json", "-d", "1s", "-p", std::to_string(process.pid())});
  ASSERT_EQ(outcome.status.code(), 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  std::set<std::string> functions;
  for (const Json& row : report["functions"]) functions.insert(row.value("function", ""));
  EXPECT_THAT(functions, Contains("caml_unix_sleep")) << outcome.out.substr(0, 2000);
}

TEST_F(StacksLive, BytecodeSaysThatItIs) {
  const fs::path path = variety_program({"5.3", "bytecode", ""});
  if (!fs::exists(path)) GTEST_SKIP() << "the programs of tests/variety were not built";
  const Process process = start({path, "recursion"});
  const auto samples = samples_of(process.pid());
  const auto is_bytecode = [](const Json& sample) {
    return std::ranges::any_of(sample["stack"], [](const Json& frame) { return frame["kind"] == "bytecode"; });
  };
  ASSERT_GT(samples.size(), 20U);
  EXPECT_GT(std::ranges::count_if(samples, is_bytecode), static_cast<std::ptrdiff_t>(samples.size() / 2)) << samples[0];
}

TEST_F(StacksLive, FilesForOtherProgramsAreMadeOfARecording) {
  const Process process = start({ocaml_program("stacks"), "recursion"});
  samples_of(process.pid());
  const std::string recording = dir / "stacks.fxt";
  for (const char* const suffix : {".folded", ".pb.gz", ".speedscope.json", ".html"}) {
    const std::string file = dir / (std::string("profile") + suffix);
    const Outcome outcome = run_tool({"profile", "-i", recording, "-o", file});
    EXPECT_EQ(outcome.status.code(), 0) << suffix << outcome.err;
    EXPECT_GT(fs::file_size(file), 100U) << suffix;
  }
  EXPECT_THAT(read_file(dir / "profile.folded"), HasSubstr("Stacks.descend"));
}

/// Another user attacks what stacks need, and root's program keeps its stacks.
class StackAttackLive : public StacksLive {
 protected:
  void SetUp() override {
    StacksLive::SetUp();
    fs::create_directory(attack_dir_);
    fs::copy_file(ocaml_program("stacks"), attack_dir_ / "program");
  }
  void TearDown() override { fs::remove_all(attack_dir_); }

  Command attack(const char* name) const { return {.argv = {RTEV_ATTACK, name, attack_dir_}}; }
  void begin_recording(std::optional<Process>& tracer) const {
    start_ready(tracer, {.argv = {tool(), "record", "--stacks", "-o", recording_}});
  }
  /// Ends the recording, when all is recorded of a program that has run for a second. The messages of the tracer.
  std::string expect_stacks(const Process& honest, Process& tracer) const {
    EXPECT_TRUE(poll_until([&] { return cpu_of(honest.pid()) > 1s; }));
    tracer.signal(SIGINT);
    const Outcome outcome = tracer.wait();
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    const std::vector<Json> samples = dumped(recording_).of(honest.pid(), "sample");
    EXPECT_GT(samples.size(), 50U);
    EXPECT_GT(std::ranges::count_if(samples, is_complete) * 100, std::ssize(samples) * 95) << outcome.err;
    return outcome.err;
  }

  /// On tmpfs: disks would be a bottleneck of the attack.
  const fs::path attack_dir_ = "/dev/shm/rtev-test." + std::to_string(::getpid());

 private:
  const std::string recording_ = dir / "attack.fxt";
};

/// Bytes of tables that a tracer has mapped.
std::uint64_t bytes_of_tables(pid_t tracer) {
  std::ifstream maps("/proc/" + std::to_string(tracer) + "/maps");
  std::uint64_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0, end = 0;
    if (line.contains("/memfd:unwind-tables") && std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &begin, &end) == 2)
      bytes += end - begin;
  }
  return bytes;
}

TEST_F(StackAttackLive, WhatIsRefusedToAUserIsNotRefusedToOthers) {
  constexpr std::uint64_t nearly_all = 15u << 20;
  Process attacker(attack("full-tables"), "ready");
  std::optional<Process> tracer;
  begin_recording(tracer);
  ASSERT_TRUE(poll_until([&] { return bytes_of_tables(tracer->pid()) > nearly_all; }));
  const Process honest = start({attack_dir_ / "program", "recursion"});
  EXPECT_THAT(expect_stacks(honest, *tracer), HasSubstr("(tables "));
  attacker.go_until("done");
}

/// CPU time of a process and of its descendants, by their nice values.
void add_cpu(pid_t pid, std::map<int, std::chrono::duration<double>>& by_nice) {
  auto own = cpu_of(pid);
  for (const pid_t child : children_of(pid)) {
    own -= cpu_of(child);
    add_cpu(child, by_nice);
  }
  by_nice[::getpriority(PRIO_PROCESS, static_cast<id_t>(pid))] += own;
}

TEST_F(StackAttackLive, FilesThatTakeLongToReadAreForLowPriority) {
  constexpr int lowered = 5;
  Process attacker(attack("expensive-tables"), "ready");
  const std::uint64_t begin_ns = monotonic_ns();
  std::optional<Process> tracer;
  begin_recording(tracer);
  const Process honest = start({ocaml_program("stacks"), "recursion"});
  std::map<int, std::chrono::duration<double>> cpu;
  const auto reads_files = [&] {
    cpu.clear();
    for (const pid_t helper : children_of(tracer->pid())) add_cpu(helper, cpu);
    return cpu[lowered] > 1s;
  };
  ASSERT_TRUE(poll_until(reads_files));
  const std::chrono::duration<double> time = std::chrono::nanoseconds(monotonic_ns() - begin_ns);
  // A quarter of a CPU, half a second at once, and the last answer.
  EXPECT_LT(cpu[lowered], time / 4 + 500ms + 1500ms);
  for (const auto& [nice, used] : cpu)
    EXPECT_TRUE(nice >= lowered || used < time / 4 + 500ms) << used.count() << " s at nice " << nice;
  EXPECT_THAT(expect_stacks(honest, *tracer), HasSubstr("(tables "));
  attacker.go_until("done");
}

}  // namespace
}  // namespace rtev::test
