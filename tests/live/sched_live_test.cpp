// SPDX-License-Identifier: MIT
// Scheduler events merged with ring events: order, domains, and what --sched filters.

#include <map>
#include <set>
#include <sstream>

#include "live/harness.hpp"

namespace rtev::test {
namespace {

/// Parses lines "TID DOMAIN".
std::map<int, int> domains_of(const Strings& lines) {
  std::map<int, int> domains;
  for (const std::string& line : lines) {
    std::istringstream fields(line);
    int tid = 0, domain = 0;
    fields >> tid >> domain;
    domains[tid] = domain;
  }
  return domains;
}

std::set<int> ocaml_pids(const Trace& trace) {
  std::set<int> pids;
  for (const Json& event : trace.of("process")) pids.insert(event["pid"].get<int>());
  return pids;
}

class SchedLive : public LiveTest {};

TEST_F(SchedLive, TwoProcessesAndTheirSwitchesAreInTimeOrder) {
  Process first(with_events("domains", {"2", "20"}), "ready"), second(with_events("busy_alloc", {"60"}), "ready");
  Tracer tracer;
  for (Process* process : {&first, &second}) process->close_stdin();
  for (Process* process : {&first, &second}) process->wait();
  const Trace trace = tracer.stop();  // Checks the order of all events not marked late.

  EXPECT_EQ(trace.summary["late"], 0) << trace.summary;
  for (const pid_t pid : {first.pid(), second.pid()}) {
    EXPECT_THAT(trace.from_rings(pid), Not(IsEmpty()));
    std::size_t entered = 0, left = 0;
    for (const Json& event : trace.of("switch")) {
      left += event["prev"]["pid"] == pid;
      entered += event["next"]["pid"] == pid;
    }
    EXPECT_GT(left, 0u);
    EXPECT_GT(entered, 0u);
  }
  // The two processes ran at the same time, so their events must interleave.
  std::size_t changes = 0;
  int last = 0;
  for (const Json& event : trace.events) {
    const int pid = event.value("pid", 0);
    if (event["type"] != "begin" || pid == last) continue;
    last = pid;
    ++changes;
  }
  EXPECT_GT(changes, 4u);
}

TEST_F(SchedLive, EverySwitchOfASpinningDomainNamesTheDomain) {
  // On one cpu, so that the domains preempt each other all the time.
  Command command = program("spinner", {"2"});
  command.cpu = 0;
  Process process(command);
  const auto domains = domains_of(process.lines_until("ready"));
  ASSERT_EQ(domains.size(), 2u);
  const Trace trace = Trace::parse(run_tool({"-f", "jsonl", "-d", "1s", "-p", std::to_string(process.pid())}).out);
  run_through(process);

  for (const auto& [tid, domain] : domains) {
    std::size_t left = 0, preempted = 0;
    for (const Json& event : trace.of("switch")) {
      const Json &prev = event["prev"], &next = event["next"];
      if (prev["tid"] == tid) {
        ++left;
        preempted += prev["state"] == "preempted";
        EXPECT_EQ(prev.value("domain", -1), domain) << event;
        EXPECT_EQ(prev["pid"], process.pid());
      }
      if (next["tid"] == tid && next.contains("domain")) {
        EXPECT_EQ(next["domain"], domain) << event;
      }
    }
    EXPECT_GE(left, 5u) << "domain " << domain;
    EXPECT_GT(preempted, 0u) << "domain " << domain;
  }
}

TEST_F(SchedLive, SystemThreadsHaveTheirDomain) {
  Process process(with_events("systhreads", {"3"}), "ready");
  Tracer tracer({"-p", std::to_string(process.pid())});
  process.close_stdin();
  const auto domains = domains_of(process.lines_until("done"));
  process.wait();
  const Trace trace = tracer.stop();
  ASSERT_EQ(domains.size(), 3u);
  std::size_t known = 0;
  for (const Json& event : trace.of("switch"))
    for (const char* side : {"prev", "next"}) {
      const Json& thread = event[side];
      if (thread["pid"] != process.pid() || !thread.contains("domain")) continue;
      EXPECT_EQ(thread["domain"], 0) << event;
      known += domains.contains(thread["tid"]);
    }
  EXPECT_GT(known, 0u);
}

TEST_F(SchedLive, SwitchesAreThoseOfOcamlThreadsByDefault) {
  struct Case {
    const char* mode;
    bool ocaml, others;
  };
  for (const Case& expected : {Case{"off", false, false}, Case{"ocaml", true, false}, Case{"all", true, true}}) {
    SCOPED_TRACE(expected.mode);
    Process process(with_events("busy_alloc", {"10"}), "ready");
    Tracer tracer({"--sched", expected.mode});
    run_through(process);
    // Also runs a program that is not OCaml.
    run({.argv = {"sh", "-c", "true"}});
    const Trace trace = tracer.stop();
    const std::set<int> pids = ocaml_pids(trace);
    bool ocaml = false, others = false;
    for (const Json& event : trace.of("switch")) {
      const bool is_ocaml = pids.contains(event["prev"]["pid"]) || pids.contains(event["next"]["pid"]);
      (is_ocaml ? ocaml : others) = true;
      if (is_ocaml || expected.others) continue;
      ADD_FAILURE() << "neither side is an OCaml process: " << event;
      break;
    }
    EXPECT_EQ(ocaml, expected.ocaml);
    EXPECT_EQ(others, expected.others);
    EXPECT_EQ(trace.of("wakeup").empty(), !expected.ocaml);
  }
}

TEST_F(SchedLive, WakeupsNameWakerAndWokenThread) {
  Process process(with_events("busy_alloc", {"2"}), "ready");
  Tracer tracer({"-p", std::to_string(process.pid())});
  process.go();  // This test wakes the program, which waits for a line.
  process.lines_until("done");
  const Trace trace = tracer.stop();
  bool by_us = false;
  for (const Json& event : trace.of(process.pid(), "wakeup"))
    by_us = by_us || (event["tid"] == process.pid() && event["by"]["pid"] == ::getpid());
  EXPECT_TRUE(by_us);
}

}  // namespace
}  // namespace rtev::test
