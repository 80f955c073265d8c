// SPDX-License-Identifier: MIT
// rtev-load: compares its report with its ring files, and with what the tracer delivers.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "live/harness.hpp"
#include "rtev/ring_reader.hpp"

namespace rtev::test {
namespace {

/// Number of events of one ring by kind.
using Counts = std::map<std::string, std::uint64_t>;

Command load_command(Strings arguments) {
  const char* other = std::getenv("RTEV_LOAD");
  arguments.insert(arguments.begin(), other != nullptr ? other : RTEV_LOAD);
  return {.argv = std::move(arguments)};
}

/// Parses the report. With --gate it follows the line "ready".
Json report_of(const Outcome& outcome) {
  return Json::parse(outcome.out.substr(outcome.out.starts_with("ready\n") ? 6 : 0), nullptr, false);
}

Json run_load(Strings arguments) {
  const Outcome outcome = run(load_command(std::move(arguments)));
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  return report_of(outcome);
}

Counts counts_of(const Json& domain) {
  Counts counts;
  for (const auto& [kind, count] : domain["events"].items())
    if (count != 0) counts[kind] = count;
  return counts;
}

/// Compares a preserved ring file with the report of its process: counts, words and times of each domain.
void expect_as_reported(const Json& process) {
  auto reader = RingReader::open(process["path"].get<std::string>());
  ASSERT_TRUE(reader) << reader.error().message();
  std::map<std::uint16_t, Counts> counts;
  std::map<std::uint16_t, std::pair<std::uint64_t, std::uint64_t>> times;
  while (reader->accounting().unread > 0 || counts.empty()) {
    reader->poll([&](const Batch& batch) {
      for (const Event& event : batch.events()) {
        const std::uint16_t domain = Source::unpack(event.source).domain;
        ++counts[domain][std::string(to_string(event.kind))];
        const bool is_first = !times.contains(domain);
        auto& [first, last] = times[domain];
        if (is_first) first = event.time;
        EXPECT_GE(event.time, last);
        last = event.time;
      }
    });
  }
  EXPECT_EQ(counts.size(), process["domains"].size());
  for (const Json& domain : process["domains"]) {
    const std::uint16_t index = domain["domain"];
    EXPECT_EQ(counts[index], counts_of(domain)) << domain;
    EXPECT_EQ(times[index].first, domain["first_ns"]) << domain;
    EXPECT_EQ(times[index].second, domain["last_ns"]) << domain;
    const Accounting words = reader->accounting(index);
    EXPECT_EQ(words.written, domain["words"]) << domain;
    EXPECT_EQ(words.delivered, domain["words"]) << domain;
  }
}

/// Needs neither a tracer nor OCaml.
class Load : public ::testing::Test {
 protected:
  Strings in_dir(Strings arguments) const {
    arguments.insert(arguments.begin(), {"--directory", dir.path()});
    return arguments;
  }
  std::size_t files() const {
    const fs::directory_iterator entries(dir.path());
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

  TempDir dir;
};

TEST_F(Load, RingsMatchTheReport) {
  const Strings ways[] = {{"-r", "max"},
                          {"-r", "max", "--clock", "cached"},
                          {"-r", "200k"},
                          {"-r", "max", "--format", "5.0"},
                          {"-r", "max", "--family", "5.0-5.2", "--mix", "custom,gc=3"}};
  for (Strings way : ways) {
    way.insert(way.end(), {"-P", "2", "-D", "3", "-n", "10k", "--preserve"});
    const Json report = run_load(in_dir(way));
    ASSERT_EQ(report["processes"].size(), 2u);
    for (const Json& process : report["processes"]) {
      ASSERT_EQ(process["domains"].size(), 3u);
      for (const Json& domain : process["domains"]) {
        // The ring of domain 0 has its ring's start and stop events, the others have those of their domain.
        EXPECT_EQ(domain["events"]["lifecycle"], 2);
        EXPECT_EQ(domain["total"], 10'002);
      }
      expect_as_reported(process);
    }
    EXPECT_EQ(report["total"]["total"], 2 * 3 * 10'002);
  }
}

TEST_F(Load, TheSameSeedWritesTheSame) {
  const auto events = [&](const char* seed) {
    const Json report = run_load(in_dir({"-r", "max", "-n", "1234", "-D", "2", "--seed", seed}));
    return report["processes"][0]["domains"][1]["events"];
  };
  const Json one = events("5");
  EXPECT_EQ(events("5"), one);
  EXPECT_NE(events("6"), one);
}

TEST_F(Load, DomainsStartAndEnd) {
  const Json report =
      run_load(in_dir({"-D", "3", "-r", "20k", "-n", "2000", "--domain-lifetime", "5ms", "--preserve"}));
  const Json& process = report["processes"][0];
  EXPECT_EQ(process["domains"][0]["events"]["lifecycle"], 2);
  for (const int domain : {1, 2}) {
    const std::uint64_t lifecycles = process["domains"][domain]["events"]["lifecycle"];
    EXPECT_GT(lifecycles, 2u);
    EXPECT_EQ(lifecycles % 2, 0u);
    EXPECT_EQ(process["domains"][domain]["total"], 2000 + lifecycles);
  }
  expect_as_reported(process);
}

TEST_F(Load, ProcessesStartAndEnd) {
  const Json report =
      run_load(in_dir({"-P", "2", "-r", "10k", "-d", "300ms", "--process-lifetime", "10ms", "--preserve"}));
  EXPECT_GT(report["processes"].size(), 2u);
  EXPECT_EQ(report["total"]["processes"], report["processes"].size());
  for (const Json& process : report["processes"]) expect_as_reported(process);
}

TEST_F(Load, SignalEndsItWithAReportAndNoLeftovers) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    Process process(load_command(in_dir({"-P", "2", "-D", "2", "--wait"})), "ready");
    EXPECT_EQ(files(), 2u);
    process.go();
    process.signal(number);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
    EXPECT_EQ(report_of(outcome)["processes"].size(), 2u) << outcome.out;
    EXPECT_EQ(files(), 0u);
  }
}

TEST_F(Load, WaitsAtItsGate) {
  Process process(load_command(in_dir({"-n", "100", "-r", "max", "--wait"})), "ready");
  EXPECT_EQ(files(), 1u);
  EXPECT_TRUE(process.running());
  const Json report = report_of(run_through(process));
  EXPECT_EQ(report["total"]["total"], 102);
}

TEST_F(Load, IdleProcessesHaveRingsAndWriteNothing) {
  const Json report = run_load(in_dir({"-P", "20", "-r", "0", "-d", "10ms"}));
  EXPECT_EQ(report["total"]["processes"], 20);
  EXPECT_EQ(report["total"]["total"], 20 * 2);
}

TEST_F(Load, AKilledProcessIsAnError) {
  Process process(load_command(in_dir({"-P", "2", "--wait"})), "ready");
  const auto ring = fs::directory_iterator(dir.path())->path();
  ASSERT_EQ(::kill(std::stoi(ring.stem()), SIGKILL), 0);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, HasSubstr("killed by signal 9"));
  EXPECT_EQ(report_of(outcome)["processes"].size(), 1u) << outcome.out;
}

TEST_F(Load, ProcessesDoNotOutliveTheirParent) {
  Process process(load_command(in_dir({"-P", "2", "-r", "0", "--wait"})), "ready");
  process.signal(SIGKILL);
  process.wait();  // Also waits until no process holds the output open.
  EXPECT_EQ(files(), 0u);
}

TEST_F(Load, WrongUsageExitsWith2) {
  const Strings wrong[] = {{"bla"},
                           {"-r", "fast"},
                           {"-n", "0"},
                           {"-D", "0"},
                           {"--mix", "tea"},
                           {"-e", "5"},
                           {"--names", "a-name-that-is-far-too-long"},
                           {"--format", "5.0", "--mix", "user"},
                           {"--domain-lifetime", "1ms"},
                           {"-r", "0", "-n", "1"},
                           {"-D", "2", "--rings", "1"},
                           {"--preserve"}};
  for (const Strings& arguments : wrong) {
    const Outcome outcome = run(load_command(arguments));
    EXPECT_EQ(outcome.status.code(), 2) << arguments.back();
    EXPECT_THAT(outcome.err, AllOf(StartsWith("rtev-load: "), HasSubstr("\nhint: ")));
  }
}

TEST_F(Load, AMissingDirectoryIsAnError) {
  const Outcome outcome = run(load_command({"-P", "3", "--directory", dir / "none"}));
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, HasSubstr("none"));
}

/// Number of events of each domain by kind, as delivered by the tracer.
std::map<int, Counts> traced(const Trace& trace, pid_t pid) {
  const std::map<std::string, std::string> user_kinds{{"unit", "user_unit"},
                                                      {"int", "user_int"},
                                                      {"begin", "user_begin"},
                                                      {"end", "user_end"},
                                                      {"custom", "user_custom"}};
  std::map<int, Counts> counts;
  for (const Json& event : trace.from_rings(pid)) {
    const std::string type = event["type"];
    ++counts[event["domain"]][type == "user" ? user_kinds.at(event["kind"]) : type];
  }
  return counts;
}

class LoadLive : public LiveTest {
 protected:
  void expect_delivered(const Trace& trace, const Json& report) const {
    for (const Json& process : report["processes"]) {
      const pid_t pid = process["pid"];
      auto counts = traced(trace, pid);
      std::uint64_t words = 0;
      for (const Json& domain : process["domains"]) {
        EXPECT_EQ(counts[domain["domain"]], counts_of(domain)) << pid;
        words += domain["words"].get<std::uint64_t>();
      }
      auto figures = trace.words(pid);
      EXPECT_EQ(figures["written"], words) << pid;
      EXPECT_EQ(figures["delivered"], words) << pid;
    }
  }
};

TEST_F(LoadLive, TracerDeliversWhatIsReported) {
  Tracer tracer({"--sched", "off"});
  const Json report = run_load(
      {"-P", "2", "-D", "2", "-r", "20k", "-d", "100ms", "--directory", dir.path(), "--names", "webshop,billing"});
  ASSERT_EQ(report["processes"].size(), 2u);
  EXPECT_GT(report["total"]["total"], 1000);
  const Trace trace = tracer.stop();
  expect_delivered(trace, report);
  std::vector<std::string> names;
  for (const Json& process : report["processes"]) names.push_back(trace.from_rings(process["pid"]).back()["comm"]);
  EXPECT_THAT(names, UnorderedElementsAre("webshop", "billing"));
}

TEST_F(LoadLive, TracerDeliversEveryEventOfShortProcesses) {
  Tracer tracer({"--sched", "off"});
  const Json report = run_load({"-P", "2", "-D", "2", "-r", "5k", "-d", "200ms", "--process-lifetime", "20ms",
                                "--domain-lifetime", "5ms", "--directory", dir.path()});
  EXPECT_GT(report["processes"].size(), 2u);
  expect_delivered(tracer.stop(), report);
}

}  // namespace
}  // namespace rtev::test
