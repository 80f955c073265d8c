// SPDX-License-Identifier: MIT
// rtev-bpf latency: compares its distributions with the events of the same recording.

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>

#include "live/analysis_fixture.hpp"
#include "live/spans.hpp"

namespace rtev::test {
namespace {

using Lengths = std::vector<std::uint64_t>;

class LatencyLive : public AnalysisLive {
 protected:
  std::string recording(const Strings& program) const {
    Strings command = program;
    command.front() = ocaml_program(program.front());
    return record("run.fxt", command).path;
  }
};

Lengths lengths_of(
    const std::vector<PhaseSpan>& spans,
    const std::function<bool(const PhaseSpan&)>& wanted = [](const PhaseSpan&) { return true; }) {
  Lengths lengths;
  for (const PhaseSpan& span : spans)
    if (wanted(span)) lengths.push_back(span.length());
  return lengths;
}

/// Checks the distribution against the durations, and its sums of thread states against those of the spans.
void expect_figures(const Json& figures, const Lengths& lengths) {
  EXPECT_EQ(difference(figures, lengths), "");
  std::uint64_t spent = 0;
  for (const Json& part : figures["time_ns"]) spent += part.get<std::uint64_t>();
  EXPECT_EQ(spent, figures["total_ns"]);
  EXPECT_EQ(figures["on_cpu"]["count"], figures["runnable"]["count"]);
  EXPECT_EQ(figures["on_cpu"]["count"], figures["blocked"]["count"]);
  EXPECT_LE(figures["on_cpu"]["count"], lengths.size());
}

/// The same for a whole report: each process and each domain.
void expect_report(const Json& report, const std::vector<PhaseSpan>& spans) {
  expect_figures(report["all"], lengths_of(spans));
  std::size_t reported = 0;
  for (const Json& process : report["processes"]) {
    const pid_t pid = process["pid"];
    SCOPED_TRACE(pid);
    expect_figures(process, lengths_of(spans, [&](const PhaseSpan& span) { return span.pid == pid; }));
    for (const Json& domain : process["domains"]) {
      const int number = domain["domain"];
      SCOPED_TRACE(number);
      const Lengths lengths =
          lengths_of(spans, [&](const PhaseSpan& span) { return span.pid == pid && span.domain == number; });
      expect_figures(domain, lengths);
      reported += lengths.size();
    }
  }
  EXPECT_EQ(reported, spans.size()) << "some spans have no process";
  EXPECT_EQ(report["others"]["count"], 0);
}

TEST_F(LatencyLive, PausesMatchTheDump) {
  for (const Strings& program :
       {Strings{"domains", "3", "3"}, Strings{"collections", "20", "5", "2", "4", "2"}, Strings{"systhreads", "3"}}) {
    SCOPED_TRACE(program.front());
    const std::string path = recording(program);
    const std::vector<PhaseSpan> pauses = pauses_of(dumped(path));
    ASSERT_THAT(pauses, Not(IsEmpty()));
    const Json result = report({"latency", "-i", path});
    expect_report(result, pauses);
    EXPECT_EQ(result["lower_bound"], false);
    EXPECT_EQ(result["scheduler_seen"], true);
  }
}

TEST_F(LatencyLive, EveryPhaseHasItsDistribution) {
  const std::string path = recording({"collections", "10", "3", "1", "2"});
  std::map<std::string, std::vector<PhaseSpan>> phases;
  for (const PhaseSpan& span : phase_spans(dumped(path))) phases[span.name].push_back(span);
  EXPECT_GE(phases.size(), 10u);
  ASSERT_TRUE(phases.contains("minor"));
  for (const auto& [name, spans] : phases) {
    SCOPED_TRACE(name);
    const Json result = report({"latency", "-i", path, "--phase", name});
    EXPECT_EQ(result["phase"], name);
    expect_report(result, spans);
  }
}

TEST_F(LatencyLive, OllyPausesAreThreePhases) {
  const std::string path = recording({"collections", "10", "3", "1", "2"});
  std::vector<PhaseSpan> spans = phase_spans(dumped(path));
  const std::set<std::string> counted{"major", "stw_leader", "interrupt_remote"};
  std::erase_if(spans, [&](const PhaseSpan& span) { return !counted.contains(span.name); });
  std::vector<PhaseSpan> outermost;
  for (const PhaseSpan& span : spans) {
    const auto encloses = [&](const PhaseSpan& other) {
      return &other != &span && other.pid == span.pid && other.domain == span.domain && other.begin <= span.begin &&
             other.end >= span.end && other.length() > span.length();
    };
    if (std::ranges::none_of(spans, encloses)) outermost.push_back(span);
  }
  const Json result = report({"latency", "-i", path, "--olly"});
  EXPECT_EQ(result["rule"], "olly");
  expect_report(result, outermost);
}

TEST_F(LatencyLive, TimesMatchTheSwitches) {
  // The program has one domain with one thread.
  const std::string path = recording({"busy_alloc", "100"});
  const Trace trace = dumped(path);
  const Json result = report({"latency", "-i", path});
  ASSERT_EQ(result["processes"].size(), 1u);
  if (!has_all_switches(trace, result["processes"][0]["pid"])) GTEST_SKIP() << "the kernel skipped some switches";
  const Json& got = result["all"]["time_ns"];
  const ThreadTimes expected = times_of(trace, result["processes"][0]["pid"], pauses_of(trace));
  EXPECT_EQ(got["on_cpu"], expected.on_cpu);
  EXPECT_EQ(got["runnable"], expected.runnable);
  EXPECT_EQ(got["sleeping"].get<std::uint64_t>() + got["uninterruptible"].get<std::uint64_t>() +
                got["stopped"].get<std::uint64_t>(),
            expected.blocked);
  EXPECT_EQ(got["unknown"], expected.unknown);
  EXPECT_GT(expected.on_cpu, 0u);
}

TEST_F(LatencyLive, MinFiltersByDuration) {
  const std::string path = recording({"domains", "2", "3"});
  Lengths lengths = lengths_of(pauses_of(dumped(path)));
  std::ranges::sort(lengths);
  for (const std::uint64_t least : {lengths[lengths.size() / 2], lengths.back(), lengths.back() + 1}) {
    const auto first = std::ranges::lower_bound(lengths, least);
    const Json result = report({"latency", "-i", path, "--min", std::to_string(least) + "ns"});
    EXPECT_EQ(result["min_ns"], least);
    EXPECT_EQ(difference(result["all"], {first, lengths.end()}), "");
    EXPECT_EQ(result["all"]["below_min"], first - lengths.begin());
  }
}

TEST_F(LatencyLive, IntervalsReportSpansThatEndedInThem) {
  const std::string path = recording({"busy_alloc", "300"});
  const Trace trace = dumped(path);
  const std::vector<PhaseSpan> pauses = pauses_of(trace);
  const std::uint64_t start = trace.header["start"];
  const std::vector<Json> all = reports({"latency", "-i", path, "--interval", "5ms"});
  ASSERT_GT(all.size(), 3u);
  ASSERT_EQ(all.size() % 2, 1u) << "two for each interval, and one of the run";
  std::uint64_t before = start;
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    const Json &interval = all[i], &so_far = all[i + 1];
    const std::uint64_t from = interval["start_ns"], to = interval["end_ns"];
    SCOPED_TRACE(from);
    EXPECT_EQ(interval["report"], "interval");
    EXPECT_EQ(so_far["report"], "so_far");
    EXPECT_EQ(from, before);
    EXPECT_GT(to, from);
    EXPECT_EQ((to - start) % 5'000'000, 0u);
    EXPECT_EQ(so_far["start_ns"], start);
    EXPECT_EQ(so_far["end_ns"], to);
    const auto ends_in = [&](std::uint64_t begin) {
      return [=](const PhaseSpan& span) { return span.end >= begin && span.end < to; };
    };
    before = to;
    if (so_far["all"].is_null()) {
      EXPECT_EQ(lengths_of(pauses, ends_in(0)).size(), 0u) << "unknown, although a ring was read";
      continue;
    }
    EXPECT_EQ(difference(interval["all"], lengths_of(pauses, ends_in(from))), "");
    EXPECT_EQ(difference(so_far["all"], lengths_of(pauses, ends_in(0))), "");
  }
  EXPECT_EQ(all.back()["report"], "run");
  EXPECT_EQ(difference(all.back()["all"], lengths_of(pauses)), "");
}

TEST_F(LatencyLive, ReportsAppearWhileProgramsRun) {
  Process process(with_events("killed"), "ready");
  Tracer tracer({"-p", std::to_string(process.pid()), "--interval", "20ms"}, analysis("latency"));
  process.go_until("busy");
  for (int report = 0; report < 3; ++report) tracer.process().line_with("\"report\":\"so_far\"");
  EXPECT_TRUE(tracer.process().running());
  const std::vector<Json> all = json_lines(tracer.interrupt().out);
  ASSERT_GE(all.size(), 7u);
  std::uint64_t count = 0;
  for (const Json& report : all) {
    if (report["report"] == "interval") count += report["all"]["count"].get<std::uint64_t>();
    if (report["report"] == "so_far") {
      EXPECT_EQ(report["all"]["count"], count);
    }
  }
  EXPECT_GE(all.back()["all"]["count"], count);
  EXPECT_EQ(all.back()["processes"][0]["comm"], "killed");
}

TEST_F(LatencyLive, ReportsAppearWhileNothingHappens) {
  const auto begin = std::chrono::steady_clock::now();
  Tracer tracer({"--interval", "100ms", "-n", "no such program"}, analysis("latency"));
  for (int report = 0; report < 3; ++report) {
    const Json interval = Json::parse(tracer.process().line_with("\"report\":\"interval\""));
    EXPECT_EQ(interval["all"]["count"], 0);
    EXPECT_EQ((interval["end_ns"].get<std::uint64_t>() - interval["start_ns"].get<std::uint64_t>()) % 100'000'000, 0u);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  tracer.process().signal(SIGINT);
  EXPECT_EQ(tracer.process().wait().status.code(), 1) << "no process was selected";
}

TEST_F(LatencyLive, LiveReportMatchesThatOfARecording) {
  const Strings program{ocaml_program("collections"), "20", "5", "2", "2"};
  const Json live = report_of({"latency"}, program).report,
             recorded = report({"latency", "-i", record("run.fxt", program).path});
  for (const Json* one : {&live, &recorded}) {
    const Json& process = one->at("processes").at(0);
    EXPECT_EQ(process["comm"], "collections");
    EXPECT_EQ(process["ended"], true);
    EXPECT_EQ(process["domains"][0]["domain"], 0);
    EXPECT_GE(process["count"], 40) << "each collection is a pause";
    EXPECT_EQ((*one)["scheduler_seen"], true);
    EXPECT_EQ((*one)["lower_bound"], false);
  }
  for (const auto& [name, value] : live.items()) EXPECT_TRUE(recorded.contains(name)) << name;
  for (const auto& [name, value] : live["all"].items()) EXPECT_TRUE(recorded["all"].contains(name)) << name;
}

TEST_F(LatencyLive, WithoutSwitchesTimesAreUnknown) {
  const Json result = report_of({"latency", "--sched", "off"}, {ocaml_program("busy_alloc"), "20"}).report;
  EXPECT_EQ(result["scheduler_seen"], false);
  EXPECT_GT(result["all"]["total_ns"], 0);
  EXPECT_EQ(result["all"]["time_ns"]["unknown"], result["all"]["total_ns"]);
  for (const auto& of : {result["all"], result["all"]["time_ns"]}) EXPECT_EQ(of["on_cpu"], nullptr) << of;
  EXPECT_EQ(result["scheduler_dropped"], nullptr);
}

TEST_F(LatencyLive, TextHasTheFigures) {
  const std::string path = recording({"collections", "30", "5", "2", "2"});
  const Json result = report({"latency", "-i", path});
  const Outcome brief = run_tool({"latency", "-i", path}), full = run_tool({"latency", "--full", "-i", path});
  for (const Outcome& outcome : {brief, full}) {
    EXPECT_EQ(outcome.status.code(), 0);
    EXPECT_THAT(outcome.err, IsEmpty());
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("collections"), HasSubstr(std::to_string(result["processes"][0]["pid"].get<int>())),
                      HasSubstr(std::to_string(result["all"]["count"].get<int>()))));
    EXPECT_THAT(outcome.out, Not(HasSubstr("nan")));
  }
  EXPECT_LE(std::ranges::count(brief.out, '\n'), 22) << "it fits a terminal";
  EXPECT_THAT(full.out, AllOf(HasSubstr(" 95.0000 "), HasSubstr("more percentiles")));
}

/// A part of a recording is what was recorded then.
TEST_F(LatencyLive, APartOfARecording) {
  const std::string path = recording({"collections", "30", "5", "2", "2"});
  const Trace whole = dumped(path);
  const Json all = report({"latency", "-i", path})["all"];
  const std::uint64_t start_ns = whole.header["start"], end_ns = report({"latency", "-i", path})["end_ns"];
  const std::uint64_t middle_ns = (end_ns - start_ns) / 2;
  const auto part = [&](const char* option, std::uint64_t ns) {
    return report({"latency", "-i", path, option, std::to_string(ns) + "ns"});
  };
  const Json first = part("--to", middle_ns), second = part("--from", middle_ns);
  EXPECT_EQ(first["start_ns"], start_ns);
  EXPECT_EQ(first["end_ns"], start_ns + middle_ns);
  EXPECT_EQ(second["start_ns"], start_ns + middle_ns);
  EXPECT_EQ(second["end_ns"], end_ns);
  const std::uint64_t counted =
      first["all"]["count"].get<std::uint64_t>() + second["all"]["count"].get<std::uint64_t>();
  EXPECT_GE(counted + 2, all["count"]) << "at most one pause of each domain is cut";
  EXPECT_LE(counted, all["count"].get<std::uint64_t>() + 10) << "what follows inside of one that is cut counts itself";
  const Outcome dump = run_tool({"dump", "-q", path, "--around", std::to_string(middle_ns) + "ns"});
  EXPECT_EQ(dump.status.code(), 0);
  EXPECT_THAT(dump.out, HasSubstr("collections"));
}

/// Spans that compute, sleep and collect: the program prints how long they were.
TEST_F(LatencyLive, UserSpansAreSplit) {
  const auto [path, out] = record("run.fxt", {ocaml_program("requests"), "5"});
  std::istringstream printed(out);
  for (std::string name; printed >> name;) {
    std::uint64_t ns = 0;
    printed >> ns;
    const Json spans = report({"latency", "--span", name, "-i", path})["spans"];
    ASSERT_EQ(spans.size(), 1u) << name;
    const Json& span = spans[0];
    EXPECT_EQ(span["name"], name);
    EXPECT_EQ(span["count"], 5);
    EXPECT_NEAR(span["total_ns"].get<double>(), static_cast<double>(ns), static_cast<double>(ns) / 20 + 1e6) << name;
    std::uint64_t sum = 0;
    for (const auto& [part, part_ns] : span["time_ns"].items()) sum += part_ns.get<std::uint64_t>();
    EXPECT_EQ(sum, span["total_ns"]);
    const Json& time = span["time_ns"];
    const auto all_but = [&](const char* part) { return span["total_ns"].get<double>() - time[part].get<double>(); };
    const double waits = time["no_cpu"].get<double>() + time["unknown"].get<double>();
    const std::string main_part = name == "compute" ? "code" : name == "sleep" ? "blocked" : "gc";
    EXPECT_LE(all_but(main_part.c_str()), waits + span["total_ns"].get<double>() / 5) << span;
  }
  EXPECT_EQ(report({"latency", "--span", "sleep>1h", "-i", path})["spans"][0]["below_min"], 5);
  const Outcome mistyped = run_tool({"latency", "--span", "slep", "-i", path});
  EXPECT_EQ(mistyped.status.code(), 1);
  EXPECT_THAT(mistyped.out, HasSubstr("no span is named \"slep\"; there are \"collect\", \"compute\", \"sleep\""));
}

}  // namespace
}  // namespace rtev::test
