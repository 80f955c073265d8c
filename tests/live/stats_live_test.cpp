// SPDX-License-Identifier: MIT
// rtev-bpf stats: compares its figures with what programs print about themselves, and with the events of the same run.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "live/analysis_fixture.hpp"
#include "live/spans.hpp"

namespace rtev::test {
namespace {

using Figures = std::map<std::string, std::uint64_t>;

class StatsLive : public AnalysisLive {};

/// Parses a line "NAME minor=... major=..." of `collections`.
Figures quick_stat(const std::string& out, const std::string& name) {
  Figures figures;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + " ")) continue;
    std::istringstream fields(line.substr(name.size()));
    for (std::string field; fields >> field;) {
      const std::size_t equals = field.find('=');
      figures[field.substr(0, equals)] = std::stoull(field.substr(equals + 1));
    }
  }
  EXPECT_FALSE(figures.empty()) << out;
  return figures;
}

/// The same figures from a report.
Figures counts_of(const Json& process) {
  const Json &collections = process["collections"], &calls = process["explicit"], &words = process["words"];
  return {{"minor", collections["minor"]},
          {"major", collections["major_cycles"]},
          {"compactions", collections["compactions"]},
          {"forced", calls["full_major"].get<std::uint64_t>() + calls["compact"].get<std::uint64_t>()},
          {"minor_words", words["minor"]},
          {"promoted_words", words["promoted"]},
          {"major_words", words["major"]}};
}

void expect_shares_between_nothing_and_all(const Json& figures) {
  EXPECT_LE(figures["gc_ns"], figures["domain_ns"]) << figures;
  if (figures["gc_share"].is_null()) return;
  EXPECT_THAT(figures["gc_share"].get<double>(), AllOf(Ge(0), Le(1))) << figures;
}

std::uint64_t sum_over_domains(const Json& process, const char* group, const char* figure) {
  std::uint64_t sum = 0;
  // What a domain without a collection has allocated is unknown.
  for (const Json& domain : process["domains"])
    if (const Json& of = domain[group][figure]; !of.is_null()) sum += of.get<std::uint64_t>();
  return sum;
}

std::uint64_t sum_of_counters(const Trace& trace, const std::string& name) {
  std::uint64_t sum = 0;
  for (const Json& event : trace.of("counter"))
    if (event["name"] == name) sum += event["value"].get<std::uint64_t>();
  return sum;
}

TEST_F(StatsLive, CountsMatchTheProgram) {
  const struct {
    unsigned minors, slices, fulls, domains, at_once;
  } cases[] = {{0, 0, 0, 0, 1}, {20, 5, 2, 0, 1}, {100, 0, 0, 0, 1}, {0, 30, 10, 0, 1},
               {3, 1, 1, 1, 1}, {7, 2, 0, 4, 1},  {5, 0, 1, 6, 3},   {10, 5, 1, 4, 4}};
  for (const auto& mix : cases) {
    Strings program{ocaml_program("collections")};
    for (const unsigned number : {mix.minors, mix.slices, mix.fulls, mix.domains, mix.at_once})
      program.push_back(std::to_string(number));
    SCOPED_TRACE(::testing::PrintToString(program));
    const auto [report, out, status] = report_of({"stats"}, program);
    EXPECT_EQ(status.code(), 0);
    ASSERT_EQ(report["processes"].size(), 1u) << report;
    const Json& process = report["processes"][0];
    Figures expected = quick_stat(out, "after"), got = counts_of(process);
    // Slice events do not include what a domain allocates after its last slice.
    EXPECT_EQ(process["words"]["major_lower_bound"], true);
    if (mix.domains > 0) {
      EXPECT_LE(got["major_words"], expected["major_words"]);
      expected.erase("major_words");
      got.erase("major_words");
    }
    EXPECT_EQ(got, expected);

    const Json& calls = process["explicit"];
    EXPECT_EQ(calls["minor"], mix.minors * (1 + mix.domains) + 2) << "includes collections before its own counts";
    EXPECT_EQ(calls["major_slice"], mix.slices);
    EXPECT_EQ(calls["full_major"], mix.fulls);
    EXPECT_EQ(calls["compact"], 1);
    EXPECT_EQ(process["lower_bound"], false) << process["because"];
    EXPECT_EQ(process["ended"], true);
    for (const char* figure : {"minor", "promoted"})
      EXPECT_EQ(sum_over_domains(process, "words", figure), process["words"][figure]);
    expect_shares_between_nothing_and_all(process);
    expect_shares_between_nothing_and_all(report["total"]);
  }
}

TEST_F(StatsLive, EachUseOfADomainNumberIsAnIncarnation) {
  const Json report = report_of({"stats"}, {ocaml_program("collections"), "4", "0", "0", "6", "1"}).report;
  const Json& process = report["processes"][0];
  EXPECT_EQ(process["domains"].size(), 7u);
  std::map<int, int> incarnations;
  for (const Json& domain : process["domains"]) {
    EXPECT_EQ(domain["incarnation"], ++incarnations[domain["domain"]]) << "in order";
    EXPECT_EQ(domain["ended"], true);
    expect_shares_between_nothing_and_all(domain);
    EXPECT_LE(domain["wall_ns"], process["wall_ns"]);
    if (domain["domain"] != 0) {
      EXPECT_EQ(domain["explicit"]["minor"], 4);
    }
  }
  EXPECT_EQ(incarnations[0], 1);
  EXPECT_LT(incarnations.size(), 7u) << "no number was used twice";
}

TEST_F(StatsLive, RecordingGivesTheSameCounts) {
  for (const char* file : {"run.fxt", "run.fxt.gz"}) {
    SCOPED_TRACE(file);
    const auto [path, out] = record(file, {ocaml_program("collections"), "12", "3", "1"});
    const Json process = report({"stats", "-i", path})["processes"][0];
    EXPECT_EQ(counts_of(process), quick_stat(out, "after"));
    EXPECT_EQ(process["comm"], "collections");
  }
}

TEST_F(StatsLive, FiguresAreSumsOverTheEvents) {
  for (const Strings& program : {Strings{"collections", "15", "4", "2", "3", "2"}, Strings{"domains", "3", "2"},
                                 Strings{"systhreads", "3"}, Strings{"user_events"}, Strings{"alloc_buckets"}}) {
    SCOPED_TRACE(program.front());
    Strings command = program;
    command.front() = ocaml_program(program.front());
    const std::string path = record("run.fxt", command).path;
    const Trace trace = dumped(path);
    const Json process = report({"stats", "-i", path})["processes"][0];
    const pid_t pid = process["pid"];

    std::uint64_t in_pauses = 0, leading = 0, following = 0, slices = 0;
    for (const PhaseSpan& span : phase_spans(trace)) {
      in_pauses += span.outermost ? span.length() : 0;
      leading += span.name == "stw_leader";
      following += span.name == "stw_handler";
      slices += span.name == "major_slice";
    }
    EXPECT_EQ(process["gc_ns"], in_pauses);
    EXPECT_EQ(process["stw_led"], leading);
    EXPECT_EQ(process["stw_followed"], following);
    EXPECT_EQ(process["collections"]["major_slices"], slices);
    EXPECT_EQ(process["events"], trace.from_rings(pid).size());
    // These two counters are in bytes.
    EXPECT_EQ(process["words"]["minor"], sum_of_counters(trace, "minor_allocated") / 8);
    EXPECT_EQ(process["words"]["promoted"], sum_of_counters(trace, "minor_promoted") / 8);
    if (slices > 0) {
      EXPECT_EQ(process["words"]["major"], sum_of_counters(trace, "major_allocated_words"));
    }

    Figures user_events;
    for (const Json& event : trace.of("user"))
      if (event["kind"] != "end") ++user_events[event["name"]];
    std::uint64_t all = 0;
    for (const Json& counted : process["user_event_counts"]) {
      EXPECT_EQ(counted["count"], user_events[counted["name"]]) << counted;
      all += counted["count"].get<std::uint64_t>();
    }
    EXPECT_EQ(process["user_events"], all);
    EXPECT_EQ(process["user_event_counts"].size(), user_events.size());

    std::vector<std::uint64_t> buckets;
    for (const Json& event : trace.of("alloc")) {
      const auto counts = event["buckets"].get<std::vector<std::uint64_t>>();
      buckets.resize(counts.size());
      for (std::size_t i = 0; i < counts.size(); ++i) buckets[i] += counts[i];
    }
    EXPECT_EQ(process["alloc_buckets"], buckets.empty() ? Json() : Json(buckets));
  }
}

TEST_F(StatsLive, HeapCountersOfADomainHaveLastAndMaximumValue) {
  const std::string path = record("run.fxt", {ocaml_program("collections"), "30", "5", "3"}).path;
  const Json process = report({"stats", "-i", path})["processes"][0];
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> expected;
  for (const Json& event : dumped(path).of("counter")) {
    auto& [last, greatest] = expected[event["name"]];
    last = event["value"];
    greatest = std::max(greatest, last);
  }
  EXPECT_GE(process["heap"].size(), 5u);
  for (const auto& [name, gauge] : process["heap"].items()) {
    EXPECT_EQ(gauge["last"], expected[name].first) << name;
    EXPECT_EQ(gauge["max"], expected[name].second) << name;
  }
  EXPECT_EQ(process["domains"][0]["heap"], process["heap"]) << "there is only one domain";
}

/// The kernel's figures of a process: its cpu time and its maximum memory.
std::uint64_t cpu_ns(pid_t pid) {
  std::uint64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream file(task.path() / "schedstat");
    std::uint64_t on_cpu = 0;
    if (file >> on_cpu) sum += on_cpu;
  }
  return sum;
}

std::uint64_t max_rss_bytes(pid_t pid) {
  std::istringstream status(read_file("/proc/" + std::to_string(pid) + "/status"));
  std::uint64_t kilobytes = 0;
  for (std::string word; status >> word;)
    if (word == "VmHWM:") status >> kilobytes;
  return kilobytes * 1024;
}

/// The time that the hypervisor gave to others, of all cpus. The kernel takes it off the time of threads; switches do
/// not show it.
std::uint64_t stolen_ns() {
  std::istringstream stat(read_file("/proc/stat"));
  std::string cpu;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, io = 0, irq = 0, soft_irq = 0, stolen = 0;
  stat >> cpu >> user >> nice >> system >> idle >> io >> irq >> soft_irq >> stolen;
  return stolen * 1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
}

TEST_F(StatsLive, CpuTimeAndMemoryMatchTheKernel) {
  Process process(with_events("busy_alloc", {"300"}), "ready");
  const std::uint64_t before = cpu_ns(process.pid()), stolen_before = stolen_ns();
  Tracer tracer({"-p", std::to_string(process.pid())}, analysis("stats"));
  process.go_until("done");
  const std::uint64_t spent = cpu_ns(process.pid()) - before;
  const Json report = json_lines(tracer.interrupt().out).at(0);
  const std::uint64_t stolen = stolen_ns() - stolen_before;
  const std::uint64_t memory = max_rss_bytes(process.pid());
  constexpr std::uint64_t slack = 1 << 20;
  if (before == 0) GTEST_SKIP() << "this kernel does not count the time of threads";

  const Json entry = process_in(report, process.pid());
  EXPECT_EQ(entry["ended"], false);
  EXPECT_EQ(entry["domains"][0]["ended"], false);
  const std::uint64_t tolerance = 5'000'000 + spent / 20;
  EXPECT_THAT(entry["cpu_ns"].get<std::uint64_t>(),
              AllOf(Ge(spent - std::min(spent, tolerance)), Le(spent + tolerance + stolen)));
  EXPECT_THAT(entry["max_rss_bytes"].get<std::uint64_t>(), AllOf(Ge(memory / 2), Le(memory + slack)))
      << "the kernel counts pages of each cpu in batches";
}

TEST_F(StatsLive, ProcessesCanBeSelected) {
  Process chosen(with_events("busy_alloc", {"3"}), "ready"), other(with_events("domains", {"1", "1"}), "ready");
  Tracer by_pid({"-p", std::to_string(chosen.pid())}, analysis("stats")), by_name({"-n", "busy_*"}, analysis("stats"));
  run_through(chosen);
  run_through(other);
  for (Tracer* tracer : {&by_pid, &by_name}) {
    const Json report = json_lines(tracer->interrupt().out).at(0);
    ASSERT_EQ(report["processes"].size(), 1u) << report;
    EXPECT_EQ(report["processes"][0]["pid"], chosen.pid());
    EXPECT_GT(report["processes"][0]["collections"]["minor"], 0);
  }
}

TEST_F(StatsLive, TextHasTheFigures) {
  const auto [path, out] = record("run.fxt", {ocaml_program("collections"), "20", "2", "1"});
  const Json process = report({"stats", "-i", path})["processes"][0];
  const Outcome outcome = run_tool({"stats", "--full", "-i", path});
  EXPECT_EQ(outcome.status.code(), 0);
  EXPECT_THAT(outcome.out, HasSubstr("collections"));
  EXPECT_THAT(outcome.out, HasSubstr(std::to_string(process["pid"].get<int>())));
  for (const char* figure : {"minor", "promoted"}) {
    std::string words = std::to_string(process["words"][figure].get<std::uint64_t>());
    ASSERT_EQ(words.size(), 4u);
    EXPECT_THAT(outcome.out, HasSubstr(words.insert(1, ",")));
  }
}

}  // namespace
}  // namespace rtev::test
