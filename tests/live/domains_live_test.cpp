// SPDX-License-Identifier: MIT
// The maximum number of domains, thousands of short-lived domains, and the names of a program's threads.

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "live/analysis_fixture.hpp"
#include "live/oracle.hpp"
#include "support/chrome_check.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

/// Starting and ending domains is slow with few cpus.
constexpr std::chrono::seconds long_timeout{120};

class DomainsLive : public AnalysisLive {};

TEST_F(DomainsLive, Delivers128DomainsAtOnce) {
  covers("lifecycle", "128 domains at once");
  Tracer tracer({"--sched", "off"});
  // 128 with the main one: OCaml's default limit.
  Process process(preserved("crowd", {"127", "2"}));
  process.close_stdin();
  EXPECT_EQ(process.wait(long_timeout).status.code(), 0);
  const Trace trace = tracer.stop();
  expect_exact(trace, dir.path(), process.pid());
  EXPECT_EQ(steps(trace, process.pid()).size(), 2 * 127u);
  std::map<int, std::vector<std::string>> lives;
  for (const Json& event : trace.of(process.pid(), "lifecycle")) {
    const std::string name = event["name"];
    if (name.starts_with("domain_")) lives[event["domain"]].push_back(name);
  }
  EXPECT_EQ(lives.size(), 127u);
  for (const auto& [domain, names] : lives) {
    EXPECT_EQ(names, (Strings{"domain_spawn", "domain_terminate", "domain_spawn", "domain_terminate"})) << domain;
  }
}

TEST_F(DomainsLive, EachOfAThousandDomainsIsAnIncarnation) {
  covers("lifecycle", "1,000 domains, numbers reused");
  constexpr int at_once = 4, times = 250, spawned = at_once * times;
  Process recorder({.argv = {tool(), "record", "-q", "-o", dir / "run.fxt", "--", ocaml_program("crowd"),
                             std::to_string(at_once), std::to_string(times)}});
  recorder.close_stdin();
  const Outcome outcome = recorder.wait(long_timeout);
  ASSERT_EQ(outcome.status.code(), 0) << outcome.err;

  const Trace trace = dumped(dir / "run.fxt");
  std::map<int, std::uint64_t> lives;
  for (const Json& event : trace.of("lifecycle")) lives[event["domain"]] += event["name"] == "domain_spawn";
  std::uint64_t all = 0;
  for (const auto& [domain, count] : lives) all += count;
  EXPECT_EQ(all, spawned);
  EXPECT_LT(lives.size(), 10u);

  const Json process = report({"stats", "-i", dir / "run.fxt"})["processes"][0];
  const Json& listed = process["domains"];
  EXPECT_EQ(listed.size() + process["other_domains"]["domains"].get<std::uint64_t>(), spawned + 1u);
  std::map<int, std::vector<std::uint64_t>> incarnations;
  for (const Json& domain : listed) {
    incarnations[domain["domain"]].push_back(domain["incarnation"]);
    EXPECT_EQ(domain["ended"], true);
  }
  for (const auto& [domain, numbers] : incarnations) {
    if (domain == 0) continue;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      EXPECT_EQ(numbers[i], lives[domain] - numbers.size() + i + 1)
          << "the newest of domain " << domain << ", in order";
  }

  // Viewers show each domain on the row of the thread that ran it.
  convert(dir / "run.fxt", dir / "run.json");
  const ChromeTrace chrome = read_chrome_trace(read_file(dir / "run.json"));
  EXPECT_THAT(chrome.problems, IsEmpty());
  std::map<ChromeTrace::Row, int> spawns;
  for (const auto& [row, instants] : chrome.instants)
    for (const auto& instant : instants) spawns[row] += instant.name == "domain_spawn";
  std::erase_if(spawns, [](const auto& row) { return row.second == 0; });
  EXPECT_EQ(spawns.size(), static_cast<std::size_t>(spawned)) << "two domains share a row";
}

/// Number of voluntary context switches of each thread of a process.
std::map<pid_t, std::uint64_t> sleeps(pid_t pid) {
  std::map<pid_t, std::uint64_t> counts;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream status(task.path() / "status");
    const pid_t tid = std::stoi(task.path().filename());
    for (std::string word; status >> word;)
      if (word == "voluntary_ctxt_switches:") status >> counts[tid];
  }
  return counts;
}

TEST_F(DomainsLive, ThreadsAreNamedByRole) {
  covers("lifecycle", "systhreads, backup and tick threads distinguished");
  constexpr std::size_t domains = 3;
  Process process(with_events("crew", {std::to_string(domains - 1)}));
  std::map<int, std::string> expected;
  for (std::size_t i = 0; i < 2 * domains;) {
    std::istringstream line(process.line_with(""));
    int tid = 0, domain = 0;
    std::string kind;
    if (!(line >> tid >> domain >> kind)) continue;  // the line "ready"
    expected[tid] = "domain " + std::to_string(domain) + (kind == "own" ? "" : " " + kind);
    ++i;
  }
  Tracer tracer({"-o", dir / "run.json", "-p", std::to_string(process.pid())}, {.format = {"record"}});
  // Each domain has its own thread, one more systhread, the backup thread and the tick thread; one further thread waits
  // for the end.
  auto before = sleeps(process.pid());
  ASSERT_EQ(before.size(), 4 * domains + 1);
  constexpr std::uint64_t enough = 8;
  EXPECT_TRUE(poll_until([&] {
    const auto now = sleeps(process.pid());
    std::size_t active = 0;
    for (const auto& [tid, count] : now) active += count >= before[tid] + enough;
    return active >= 4 * domains;
  }));
  tracer.interrupt();
  run_through(process);

  const ChromeTrace chrome = read_chrome_trace(read_file(dir / "run.json"));
  EXPECT_THAT(chrome.problems, IsEmpty());
  std::map<std::string, int> others;
  for (const auto& [tid, count] : before) {
    const auto row = chrome.row_names.find({process.pid(), tid});
    const std::string name = row == chrome.row_names.end() ? "none" : row->second;
    if (const auto known = expected.find(tid); known != expected.end())
      EXPECT_EQ(name, known->second) << tid;
    else
      ++others[name];
  }
  // The main thread does not run at all.
  others.erase("none");
  others.erase("domain 0 systhread");
  std::map<std::string, int> runtimes_own;
  for (std::size_t domain = 0; domain < domains; ++domain)
    for (const char* role : {" backup", " tick"}) runtimes_own["domain " + std::to_string(domain) + role] = 1;
  EXPECT_EQ(others, runtimes_own);
}

}  // namespace
}  // namespace rtev::test
