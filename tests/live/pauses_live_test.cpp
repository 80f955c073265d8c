// SPDX-License-Identifier: MIT
// rtev-bpf pauses: times add up and agree with the kernel's, and the expected cause is blamed.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "live/analysis_fixture.hpp"
#include "live/spans.hpp"

namespace rtev::test {
namespace {

std::uint64_t sum(const Json& figures) {
  std::uint64_t total = 0;
  for (const Json& figure : figures) total += figure.get<std::uint64_t>();
  return total;
}

/// Holds for every report: the parts of a pause add up to its duration. `report` says whether switches are missing.
void expect_sums(const Json& pause, const Json& report) {
  const std::uint64_t duration = pause["duration_ns"];
  const Json& time = pause["time_ns"];
  if (pause["tid"].is_null()) {
    EXPECT_EQ(time["unknown"], duration) << "its thread was never seen: " << pause;
    return;
  }
  EXPECT_EQ(sum(time), duration) << pause;
  EXPECT_EQ(sum(pause["blocked_ns"]), time["sleeping"].get<std::uint64_t>() +
                                          time["uninterruptible"].get<std::uint64_t>() +
                                          time["stopped"].get<std::uint64_t>())
      << pause;
  EXPECT_EQ(pause["start_wait_ns"].get<std::uint64_t>() + pause["finish_wait_ns"].get<std::uint64_t>() +
                sum(pause["besides_ns"]),
            duration)
      << pause;
  std::uint64_t waits = pause["other_waits_for_cpu_ns"];
  const std::uint64_t unknown = pause["unknown_waits_for_cpu_ns"];
  for (const Json& wait : pause["waits_for_cpu"]) waits += wait["ns"].get<std::uint64_t>();
  // Contradicting switches mean that the kernel skipped some. Then a part of a wait is unknown.
  const Json& counts = report["counts"];
  EXPECT_EQ(waits + unknown, time["runnable"]) << pause;
  if (counts["scheduler_contradictions"] == 0 && counts["scheduler_dropped"] == 0 && pause["late"] == false) {
    EXPECT_EQ(unknown, 0u) << pause;
  }
  std::uint64_t own = 0;
  for (const Json& phase : pause["phases"]) own += phase["own_ns"].get<std::uint64_t>();
  if (pause["folded_phases"] == 0) {
    EXPECT_EQ(own, duration) << pause;
  }
  EXPECT_LE(pause["blame"]["ns"], duration) << pause;
  EXPECT_NE(pause["blame"]["text"], "");
}

class PausesLive : public AnalysisLive {
 protected:
  void SetUp() override {
    AnalysisLive::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    // A unique process name.
    const std::string script = dir / "cpu_thief";
    std::ofstream(script) << "#!/bin/sh\necho ready\nwhile :; do :; done\n";
    fs::permissions(script, fs::perms::owner_all);
  }

  /// A process that spins, with a priority that gives it most of the cpu.
  Command thief(int cpu) const {
    Command command{.argv = {dir / "cpu_thief"}, .cpu = cpu};
    return preferred(command, "-15");
  }
  /// A program of two domains on cpu 0, with a priority above everything else on this host.
  Command neighbour(const Strings& arguments) const {
    Command command = preferred(with_events("neighbour", arguments));
    command.cpu = 0;
    return command;
  }
  static Command preferred(Command command, const char* nice = "-5") {
    command.argv.insert(command.argv.begin(), {"nice", "-n", nice});
    return command;
  }
};

/// The part of a pause spent waiting for a cpu that this process had.
std::uint64_t held_up_by(const Json& pause, pid_t pid) {
  std::uint64_t ns = 0;
  for (const Json& wait : pause["waits_for_cpu"])
    if (wait["by"].is_object() && wait["by"]["pid"] == pid) ns += wait["ns"].get<std::uint64_t>();
  return ns;
}

/// Parses lines "TID DOMAIN"; by domain.
std::map<int, int> threads_in(const Strings& lines) {
  std::map<int, int> threads;
  for (const std::string& line : lines) {
    std::istringstream fields(line);
    int tid = 0, domain = 0;
    if (fields >> tid >> domain) threads[domain] = tid;
  }
  return threads;
}

/// The entry of domain 1 in the stop-the-world section that a pause is blamed on; null if the pause has another cause.
Json blamed_neighbour(const Json& pause) {
  const Json& blame = pause["blame"];
  if (pause["domain"] != 0 || blame["cause"] != "late_domain" || blame["domain"] != 1) return {};
  for (const Json& section : pause["sections"])
    if (section["id"] == blame["section"])
      for (const Json& domain : section["domains"])
        if (domain["domain"] == 1) return domain;
  return {};
}

TEST_F(PausesLive, SumsAddUpAndPausesMatchTheDump) {
  for (const Strings& program :
       {Strings{"domains", "3", "3"}, Strings{"collections", "10", "5", "2", "4", "2"}, Strings{"systhreads", "3"}}) {
    SCOPED_TRACE(program.front());
    Strings command = program;
    command.front() = ocaml_program(program.front());
    const std::string path = record("run.fxt", command).path;
    const Json result = report({"pauses", "--top", "1000", "-i", path});
    std::vector<PhaseSpan> expected = pauses_of(dumped(path));
    EXPECT_EQ(result["counts"]["pauses"], expected.size());
    EXPECT_EQ(result["counts"]["long_enough"], expected.size());

    using Key = std::tuple<pid_t, int, std::string, std::uint64_t, std::uint64_t>;
    std::vector<Key> keys;
    for (const PhaseSpan& span : expected)
      keys.emplace_back(span.pid, span.domain, span.name, span.begin, span.length());
    ASSERT_THAT(result["pauses"], Not(IsEmpty()));
    std::uint64_t before = UINT64_MAX;
    for (const Json& pause : result["pauses"]) {
      expect_sums(pause, result);
      EXPECT_THAT(
          keys, Contains(Key{pause["pid"], pause["domain"], pause["phase"], pause["begin_ns"], pause["duration_ns"]}));
      EXPECT_LE(pause["duration_ns"], before) << "longest first";
      before = pause["duration_ns"];
    }
    const auto longest = std::ranges::max(expected, {}, &PhaseSpan::length);
    EXPECT_EQ(result["pauses"][0]["duration_ns"], longest.length());
    // All pauses but those shown as participation in another domain's section.
    EXPECT_EQ(result["pauses"].size() + result["counts"]["represented"].get<std::size_t>(), expected.size());
  }
}

TEST_F(PausesLive, TopAndMinLimitTheReport) {
  const std::string path = record("run.fxt", {ocaml_program("domains"), "2", "4"}).path;
  std::vector<std::uint64_t> lengths;
  for (const PhaseSpan& span : pauses_of(dumped(path))) lengths.push_back(span.length());
  std::ranges::sort(lengths);
  EXPECT_EQ(report({"pauses", "-i", path, "--top", "1"})["pauses"].size(), 1u);
  EXPECT_EQ(report({"pauses", "-i", path, "--top", "3"})["pauses"].size(), 3u);

  const std::uint64_t median = lengths[lengths.size() / 2];
  const Json result = report({"pauses", "-i", path, "--top", "1000", "--min", std::to_string(median) + "ns"});
  EXPECT_EQ(result["min_ns"], median);
  EXPECT_EQ(result["counts"]["pauses"], lengths.size());
  EXPECT_EQ(result["counts"]["long_enough"], lengths.end() - std::ranges::lower_bound(lengths, median));
  for (const Json& pause : result["pauses"]) EXPECT_GE(pause["duration_ns"], median);

  const Json none = report({"pauses", "-i", path, "--min", std::to_string(lengths.back() + 1) + "ns"});
  EXPECT_THAT(none["pauses"], IsEmpty());
  EXPECT_EQ(none["counts"]["long_enough"], 0);
}

TEST_F(PausesLive, CompetitorForTheCpuIsBlamedForTheRunDelayOfTheKernel) {
  Process competitor(thief(0), "ready");
  Process process(neighbour({"compute", "5", "200000"}), "ready");
  const std::string path = dir / "run.fxt";
  Tracer tracer({"--sched", "all", "-o", path, "-p", std::to_string(process.pid())}, {.format = {"record"}});
  process.go();
  std::istringstream kernel(process.line_with("schedstat").substr(std::string("schedstat").size()));
  process.lines_until("collected");
  process.lines_until("done");
  tracer.interrupt();

  const Json result = report({"pauses", "--top", "1000", "-i", path});
  ASSERT_EQ(result["counts"]["scheduler_dropped"], 0);
  std::uint64_t behind_competitor = 0;
  std::map<int, std::uint64_t> behind_others;
  bool blamed = false;
  const std::string named = "\"cpu_thief\" (pid " + std::to_string(competitor.pid()) + ")";
  for (const Json& pause : result["pauses"]) {
    expect_sums(pause, result);
    EXPECT_EQ(pause["pid"], process.pid());
    behind_competitor += held_up_by(pause, competitor.pid());
    for (const Json& wait : pause["waits_for_cpu"])
      if (wait["by"].is_object() && wait["by"]["pid"] != competitor.pid() && wait["by"]["pid"] != process.pid())
        behind_others[wait["by"]["pid"]] += wait["ns"].get<std::uint64_t>();
    const Json& blame = pause["blame"];
    if (blame["cause"] == "no_cpu") blamed = blamed || blame["text"].get<std::string>().contains(named);
    EXPECT_FALSE(blame["text"].get<std::string>().contains("--sched all")) << "blame: " << blame;
  }
  EXPECT_EQ(result["counts"]["all_switches_seen"], true);
  EXPECT_TRUE(blamed) << named << result["pauses"];
  for (const auto& [pid, ns] : behind_others)
    EXPECT_GT(behind_competitor, ns) << "blamed more than the competitor: " << pid;

  // The program's own measurement includes its Gc.minor calls, and a collection that directly follows them.
  std::uint64_t on_cpu = 0, delay = 0;
  kernel >> on_cpu >> delay;
  if (delay == 0) GTEST_SKIP() << "this kernel does not count how long threads wait for a CPU";
  const auto of_domain_0 = [&](const Strings& arguments) {
    const Json entry = process_in(report(arguments), process.pid());
    for (const Json& domain : entry["domains"])
      if (domain["domain"] == 0) return domain["time_ns"];
    return Json();
  };
  const Json calls = of_domain_0({"latency", "-i", path, "--phase", "explicit_gc_minor"}),
             all = of_domain_0({"latency", "-i", path});
  if (result["counts"]["scheduler_contradictions"] == 0) {
    EXPECT_EQ(calls["unknown"], 0);
  }
  const struct {
    const char* figure;
    std::uint64_t kernel;
  } times[] = {{"on_cpu", on_cpu}, {"runnable", delay}};
  for (const auto& time : times) {
    const double tolerance = std::max(5e6, 0.2 * static_cast<double>(time.kernel));
    EXPECT_LE(calls[time.figure].get<double>(), static_cast<double>(time.kernel) + tolerance) << time.figure;
    EXPECT_GE(all[time.figure].get<double>(), static_cast<double>(time.kernel) - tolerance) << time.figure;
  }
}

TEST_F(PausesLive, SelectionFromARecordingNamesCompetitorsForTheCpu) {
  Process competitor(thief(0), "ready");
  Process process(neighbour({"compute", "5", "200000"}), "ready");
  const std::string path = dir / "all.fxt", selected = dir / "selected.fxt", pid = std::to_string(process.pid());
  Tracer tracer({"--sched", "all", "-o", path}, {.format = {"record"}});
  process.go_until("done");
  tracer.interrupt();
  ASSERT_EQ(run_tool({"convert", "-q", path, "-p", pid, "-o", selected}).status.code(), 0);

  // The recording includes other programs of this host.
  const Json expected = report({"pauses", "--top", "1000", "-i", path, "-p", pid})["pauses"];
  ASSERT_THAT(expected, Not(IsEmpty()));
  for (const Strings& source : {Strings{path, "-p", pid}, Strings{selected}}) {
    Strings arguments{"pauses", "--top", "1000", "-i"};
    arguments.insert(arguments.end(), source.begin(), source.end());
    const Json result = report(arguments);
    std::uint64_t behind_competitor = 0;
    ASSERT_EQ(result["pauses"].size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Json& pause = result["pauses"][i];
      expect_sums(pause, result);
      EXPECT_EQ(pause["pid"], process.pid());
      EXPECT_EQ(pause["waits_for_cpu"], expected[i]["waits_for_cpu"]);
      EXPECT_EQ(pause["blame"]["text"], expected[i]["blame"]["text"]);
      behind_competitor += held_up_by(pause, competitor.pid());
    }
    EXPECT_GT(behind_competitor, 0u) << ::testing::PrintToString(source);
  }
}

TEST_F(PausesLive, DomainWithoutACpuIsBlamedForPausesOfOthers) {
  if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "needs two cpus";
  Process competitor(thief(1), "ready");
  // It is random whether the competitor has the CPU when a stop-the-world request comes, hence many short collections.
  constexpr int max_runs = 20;
  std::size_t late = 0, named_in_text = 0;  // others may have had the CPU for most of a wait
  for (int i = 0; i < max_runs && named_in_text == 0; ++i) {
    Process process(neighbour({"compute", "1000", "0"}));
    const auto threads = threads_in(process.lines_until("ready"));
    ASSERT_EQ(threads.size(), 2u);
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(1, &cpus);
    ASSERT_EQ(::sched_setaffinity(threads.at(1), sizeof cpus, &cpus), 0);
    Tracer tracer({"--sched", "all", "--top", "1000", "-p", std::to_string(process.pid())}, analysis("pauses"));
    process.go_until("done");
    const Json result = json_lines(tracer.interrupt().out).at(0);

    const std::string named = "\"cpu_thief\" (pid " + std::to_string(competitor.pid()) + ")";
    for (const Json& pause : result["pauses"]) {
      expect_sums(pause, result);
      const Json neighbour = blamed_neighbour(pause);
      if (neighbour.is_null() || pause["blame"]["why"] != "no_cpu") continue;
      ++late;
      EXPECT_EQ(neighbour["tid"], threads.at(1));
      const Json& wait = neighbour["before"]["longest_wait"];
      EXPECT_GT(wait["ns"], 0);
      if (!wait["by"].is_object() || wait["by"]["pid"] != competitor.pid()) continue;
      EXPECT_EQ(wait["cpu"], 1);
      named_in_text += pause["blame"]["text"].get<std::string>().contains(named) ? 1 : 0;
    }
  }
  EXPECT_GT(late, 0u);
  EXPECT_GT(named_in_text, 0u);
}

TEST_F(PausesLive, DomainLateAtASafepointIsBlamed) {
  const Followed followed = report_of({"pauses", "--top", "1000"}, {ocaml_program("neighbour"), "digest", "30"});
  EXPECT_EQ(followed.status.code(), 0);
  bool blamed = false;
  for (const Json& pause : followed.report["pauses"]) {
    expect_sums(pause, followed.report);
    const Json neighbour = blamed_neighbour(pause);
    if (neighbour.is_null()) continue;
    // Regardless of how often it was switched out meanwhile.
    if (followed.report["counts"]["scheduler_contradictions"] == 0) {
      EXPECT_EQ(neighbour["before"]["time_ns"]["unknown"], 0) << neighbour;
    }
    // Between digests the domain may be in a blocking section; on busy cpus its backup thread is the one that waits
    // then.
    if (pause["blame"]["why"] != "ran" || neighbour["role"] == "backup") continue;
    EXPECT_GT(neighbour["before"]["time_ns"]["on_cpu"], 0);
    EXPECT_THAT(pause["blame"]["text"].get<std::string>(), HasSubstr("safepoint"));
    blamed = true;
  }
  EXPECT_TRUE(blamed) << followed.report["pauses"];
}

TEST_F(PausesLive, BackupThreadTakesPartForABlockedDomain) {
  const Followed followed = report_of({"pauses", "--top", "1000"}, {ocaml_program("neighbour"), "read", "20"});
  std::istringstream said(followed.out);
  Strings lines;
  for (std::string line; std::getline(said, line);) lines.push_back(line);
  const auto threads = threads_in(lines);
  std::size_t served = 0;
  for (const Json& pause : followed.report["pauses"]) {
    expect_sums(pause, followed.report);
    for (const Json& section : pause["sections"])
      for (const Json& domain : section["domains"]) {
        if (domain["domain"] != 1 || domain["role"] != "backup") continue;
        ++served;
        EXPECT_NE(domain["tid"], threads.at(1)) << "that one waits for the pipe";
      }
  }
  EXPECT_GE(served, 20u) << followed.report["pauses"];
}

TEST_F(PausesLive, WithoutSchedulerEventsTimesAreUnknown) {
  const std::string ring = ring_of(run_to_end(preserved("busy_alloc", {"10"})));
  const Json result = report({"pauses", "-q", "-i", ring});
  EXPECT_EQ(result["counts"]["scheduler_seen"], false);
  ASSERT_THAT(result["pauses"], Not(IsEmpty()));
  for (const Json& pause : result["pauses"]) {
    EXPECT_EQ(pause["time_ns"]["unknown"], pause["duration_ns"]);
    EXPECT_TRUE(pause["unknown_waits_for_cpu_ns"].is_null());
    EXPECT_EQ(pause["blame"]["cause"], "unknown");
  }
  const Outcome text = run_tool({"pauses", "-q", "-i", ring});
  EXPECT_THAT(text.out, AllOf(HasSubstr("scheduler"), HasSubstr("unknown"), Not(HasSubstr("worked on a CPU"))));
}

TEST_F(PausesLive, TextMatchesJson) {
  const std::string path = record("run.fxt", {ocaml_program("domains"), "2", "4"}).path;
  const Json result = report({"pauses", "-i", path}), worst = result["pauses"][0];
  const auto one_line = [](std::string text) {
    std::string words;
    for (std::istringstream in(text); in >> text;) words += text + " ";
    return words;
  };
  for (const bool full : {false, true}) {
    const Outcome outcome = run_tool({"pauses", full ? "--full" : "--top=1", "-i", path});
    EXPECT_EQ(outcome.status.code(), 0);
    EXPECT_THAT(outcome.err, IsEmpty());
    EXPECT_THAT(one_line(outcome.out), AllOf(HasSubstr("domains/" + std::to_string(worst["pid"].get<int>()) +
                                                       " domain " + std::to_string(worst["domain"].get<int>())),
                                             HasSubstr(one_line(worst["blame"]["text"].get<std::string>() + "."))));
    EXPECT_EQ(outcome.out.contains(worst["phase"].get<std::string>() + "   "), full);
  }
  const Outcome screen = run_tool({"pauses", "-i", path});
  EXPECT_LE(std::ranges::count(screen.out, '\n'), 23) << screen.out;
  EXPECT_THAT(screen.out, HasSubstr(std::to_string(result["groups"][0]["pauses"].get<int>()) + " × "));
  std::uint64_t grouped = result["ungrouped"];
  for (const Json& group : result["groups"]) grouped += group["pauses"].get<std::uint64_t>();
  EXPECT_EQ(grouped, result["long_pauses"]);
}

}  // namespace
}  // namespace rtev::test
