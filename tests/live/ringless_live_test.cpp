// SPDX-License-Identifier: MIT
// Programs with events off, traced by probes: compared with their own output, and with the ring of another run.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "live/harness.hpp"
#include "live/matrix.hpp"
#include "live/probed_code.hpp"

namespace rtev::test {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using Strings = std::vector<std::string>;

/// Runtime events only, without the tracer's own records.
std::vector<Json> events_of(const Trace& trace, pid_t pid) {
  std::vector<Json> events = trace.from_rings(pid);
  std::erase_if(events, [](const Json& event) { return event["type"] == "lost"; });
  return events;
}

std::size_t count(const std::vector<Json>& events, const std::string& type, const std::string& name, int domain = -1) {
  return static_cast<std::size_t>(std::ranges::count_if(events, [&](const Json& event) {
    return event["type"] == type && event["name"] == name && (domain < 0 || event["domain"] == domain);
  }));
}

/// Events of `ringless work` between its marks, in order: "begin minor", "counter minor_promoted 123".
Strings between_marks(const std::vector<Json>& events) {
  Strings found;
  int marks = 0;
  for (const Json& event : events) {
    const std::string name = event["name"];
    if (event["type"] == "end" && name == "explicit_gc_set") ++marks;
    if (marks != 1) continue;
    std::string line = event["type"].get<std::string>() + ' ' + name;
    if (name == "minor_promoted" || name == "minor_allocated") line += ' ' + event["value"].dump();
    found.push_back(std::move(line));
  }
  EXPECT_EQ(marks, 2);
  return found;
}

/// True if begins and ends of each domain pair up, innermost first.
bool nests(const std::vector<Json>& events) {
  std::map<int, Strings> open;
  for (const Json& event : events) {
    Strings& stack = open[event["domain"]];
    if (event["type"] == "begin") stack.push_back(event["name"]);
    if (event["type"] != "end") continue;
    if (stack.empty() || stack.back() != event["name"].get<std::string>()) return false;
    stack.pop_back();
  }
  return std::ranges::all_of(open, [](const auto& domain) { return domain.second.empty(); });
}

/// The number after a word in the program's output.
int said(Process& process, const std::string& word) {
  const std::string line = process.line_with(word + " ");
  return std::stoi(line.substr(line.find(word) + word.size() + 1));
}

class RinglessLive : public LiveTest {
 protected:
  static Strings for_pid(const Process& process) { return {"--ringless", "-p", std::to_string(process.pid())}; }
};

TEST_F(RinglessLive, TheSameEventsAsInARing) {
  covers("ringless", "the same events as in the ring of another run");
  constexpr const char* heaps = "30";
  Process with_ring(with_events("ringless", {"work", heaps}));
  with_ring.lines_until("ready");
  Process without(program("ringless", {"work", heaps}));
  without.lines_until("ready");
  Tracer tracer({"--ringless", "-p", std::to_string(with_ring.pid()), "-p", std::to_string(without.pid())});
  std::vector<int> minors;
  for (Process* process : {&with_ring, &without}) {
    process->go();
    minors.push_back(said(*process, "minor"));
    process->lines_until("done");
    process->go();
    process->wait();
  }
  const Trace trace = tracer.stop();
  const std::vector<Json> probed = events_of(trace, without.pid());
  EXPECT_EQ(between_marks(probed), between_marks(events_of(trace, with_ring.pid())));
  EXPECT_EQ(count(probed, "begin", "minor"), minors[1]);
  EXPECT_TRUE(nests(probed));
  EXPECT_TRUE(trace.of(without.pid(), "lost").empty());
  auto words = trace.words(without.pid());
  EXPECT_GT(words["delivered"], 0U);
  EXPECT_EQ(words["delivered"], words["written"]);
  EXPECT_THAT(trace.actions(without.pid()), ElementsAre("found", "probe", "exit"));
  EXPECT_THAT(trace.actions(with_ring.pid()), ElementsAre("found", "ring", "stop", "exit"));
}

TEST_F(RinglessLive, KnownBinaryFromTheFirstEvent) {
  covers("ringless", "started after the tracer");
  Process known(program("ringless", {"work", "1"}));
  known.lines_until("ready");
  Tracer tracer({"--ringless", "-n", "ringless"});
  Process process(program("ringless", {"work", "5"}));
  process.close_stdin();
  const int minors = said(process, "minor");
  process.wait();
  Process again(program("ringless", {"work", "5"}));
  again.close_stdin();
  again.wait();
  const Trace trace = tracer.stop();
  for (const Process* run : {&process, &again}) {
    const std::vector<Json> events = events_of(trace, run->pid());
    EXPECT_GE(count(events, "begin", "minor"), static_cast<std::size_t>(minors));
    EXPECT_TRUE(nests(events));
    EXPECT_EQ(between_marks(events), between_marks(events_of(trace, process.pid())));
    EXPECT_TRUE(trace.of(run->pid(), "lost").empty());
    EXPECT_THAT(trace.actions(run->pid()), ElementsAre("exec", "probe", "exit"));
  }
}

TEST_F(RinglessLive, EventsBeforeTheProbesAreReportedAsLost) {
  covers("ringless", "an unknown binary: missing events of its first process are reported");
  const auto copy = dir / "ringless";
  std::filesystem::copy_file(ocaml_program("ringless"), copy);
  Tracer tracer({"--ringless", "-n", "ringless"});
  Command command = program("ringless", {"work", "3"});
  command.argv[0] = copy;
  Process process(command);
  process.lines_until("ready");
  ASSERT_TRUE(ProbedCode(process.pid()).becomes(true));
  process.go();
  const int minors = said(process, "minor");
  process.lines_until("done");
  process.go();
  process.wait();
  const Trace trace = tracer.stop();
  const std::vector<Json> lost = trace.of(process.pid(), "lost");
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0]["reason"], "unprobed");
  EXPECT_EQ(lost[0]["from"], trace.action(process.pid(), "exec")["ts"]);
  EXPECT_EQ(lost[0]["to"], trace.action(process.pid(), "probe")["ts"]);
  EXPECT_EQ(count(events_of(trace, process.pid()), "begin", "minor"), minors);
  EXPECT_TRUE(nests(events_of(trace, process.pid())));
}

TEST_F(RinglessLive, ShortProgramsOneAfterTheOther) {
  covers("ringless", "100 programs of a few milliseconds in a row: each complete or reported as a loss");
  const auto copy = dir / "short";
  std::filesystem::copy_file(ocaml_program("ringless"), copy);
  Tracer tracer({"--ringless", "-n", "short", "--sched", "off"});
  Command command = program("ringless", {"storm", "5"});
  command.argv[0] = copy;
  std::vector<pid_t> pids;
  for (int i = 0; i < 100; ++i) {
    Process process(command);
    process.close_stdin();
    process.wait();
    pids.push_back(process.pid());
  }
  const Trace trace = tracer.stop();
  for (const pid_t pid : pids) {
    const Strings actions = trace.actions(pid);
    if (actions.empty() || std::ranges::find(actions, "probe") != actions.end()) continue;
    EXPECT_EQ(trace.of(pid, "lost").size(), 1U) << "no loss is reported for " << pid;
  }
  EXPECT_THAT(trace.actions(pids.back()), ElementsAre("exec", "probe", "exit"));
  EXPECT_TRUE(trace.of(pids.back(), "lost").empty());
  EXPECT_EQ(count(events_of(trace, pids.back()), "begin", "explicit_gc_minor"), 10U);
}

TEST_F(RinglessLive, EventsHaveTheirDomain) {
  covers("ringless", "several domains, each event with its domain");
  Process process(program("ringless", {"domains", "3"}));
  process.lines_until("ready");
  Tracer tracer(for_pid(process));
  process.go();
  const Strings lines = process.lines_until("done");
  process.go();
  process.wait();
  const Trace trace = tracer.stop();
  const std::vector<Json> events = events_of(trace, process.pid());
  std::set<int> seen;
  for (const std::string& line : lines) {
    int domain = 0, slices = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "domain %d %d", &domain, &slices), 2) << line;
    EXPECT_EQ(count(events, "begin", "explicit_gc_major_slice", domain), slices) << line;
    EXPECT_EQ(count(events, "lifecycle", "domain_spawn", domain), 1U) << line;
    EXPECT_EQ(count(events, "lifecycle", "domain_terminate", domain), 1U) << line;
    seen.insert(domain);
  }
  EXPECT_EQ(seen.size(), 3U);
  EXPECT_TRUE(trace.of(process.pid(), "lost").empty());
}

TEST_F(RinglessLive, NothingDuplicatedOrMissingWhenARingIsStarted) {
  covers("ringless", "a ring started midway, with two domains running: no event duplicated or missing");
  constexpr std::size_t collections = 60;
  Process process(program("ringless", {"midway", std::to_string(collections)}));
  process.lines_until("ready");
  Tracer tracer(for_pid(process));
  process.go();
  process.lines_until("done");
  process.go();
  process.wait();
  const Trace trace = tracer.stop();
  const std::vector<Json> events = events_of(trace, process.pid());
  // Events of the paused time are in no ring, and are not probed either.
  EXPECT_EQ(count(events, "begin", "explicit_gc_minor", 0), 2 * collections);
  EXPECT_EQ(count(events, "end", "explicit_gc_minor", 0), 2 * collections);
  EXPECT_EQ(count(events, "begin", "explicit_gc_minor", 1), collections);
  EXPECT_EQ(count(events, "end", "explicit_gc_minor", 1), collections);
  EXPECT_TRUE(trace.of(process.pid(), "lost").empty());
  EXPECT_THAT(trace.actions(process.pid()), ElementsAre("found", "probe", "ring", "pause", "resume", "stop", "exit"));
}

TEST_F(RinglessLive, AStrippedProgram) {
  covers("ringless", "stripped");
  const auto stripped = dir / "stripped";
  ASSERT_EQ(run({.argv = {"strip", "-o", stripped, ocaml_program("ringless")}}).status.code(), 0);
  Command command = program("ringless", {"domains", "2"});
  command.argv[0] = stripped;
  Process process(command);
  process.lines_until("ready");
  Tracer tracer(for_pid(process));
  process.go();
  process.lines_until("done");
  process.go();
  process.wait();
  const std::vector<Json> events = events_of(tracer.stop(), process.pid());
  EXPECT_EQ(count(events, "begin", "explicit_gc_major_slice", 1), 20U);
  EXPECT_EQ(count(events, "begin", "explicit_gc_major_slice", 2), 30U);
}

TEST_F(RinglessLive, AForkedChild) {
  covers("ringless", "a forked child");
  Process known(program("ringless", {"fork", "20"}));
  known.lines_until("ready");
  Tracer tracer({"--ringless", "-n", "ringless"});
  known.go();
  const pid_t child = said(known, "child");
  known.go();
  known.wait();
  const Trace trace = tracer.stop();
  const std::vector<Json> events = events_of(trace, child);
  EXPECT_EQ(count(events, "begin", "explicit_gc_minor"), 20U);
  EXPECT_EQ(count(events, "end", "explicit_gc_minor"), 20U);
  EXPECT_THAT(trace.actions(child), ElementsAre("fork", "probe", "exit"));
}

TEST_F(RinglessLive, UnprobedChildrenAreReportedAsALoss) {
  covers("ringless", "forked children that end before probes are attached, or while they are off: reported as a loss");
  struct Case {
    std::string what;
    Strings options;
    bool in_gap;
  };
  const Case cases[] = {{"never met", {}, false}, {"beyond the limit", {"--ringless-limit", "1000"}, true}};
  constexpr int children = 4, collections = 50;
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    Strings arguments{"--ringless", "-n", "nursery"};
    arguments.insert(arguments.end(), one.options.begin(), one.options.end());
    Command command = program("ringless", {"nursery", std::to_string(collections), std::to_string(children)});
    command.argv[0] = dir / "nursery";
    std::filesystem::remove(command.argv[0]);
    std::filesystem::copy_file(ocaml_program("ringless"), command.argv[0]);
    Tracer tracer(arguments);
    Process process(command);
    process.lines_until("ready");
    if (one.in_gap) {
      const ProbedCode code(process.pid());
      ASSERT_TRUE(code.becomes(true));
      process.go();
      process.lines_until("stormed");
      ASSERT_TRUE(code.becomes(false)) << "the probes are not removed";
    }
    process.close_stdin();
    std::vector<pid_t> pids(children);
    for (pid_t& pid : pids) pid = said(process, "child");
    const pid_t spawned = said(process, "spawned");
    process.wait();
    const Trace trace = tracer.stop();
    for (const pid_t pid : pids) {
      const Strings actions = trace.actions(pid);
      const std::vector<Json> lost = trace.of(pid, "lost");
      // A child that ended before its parent was known as an OCaml program is not counted.
      if (!one.in_gap && (actions.empty() || (actions.size() == 3 && lost.empty()))) continue;
      // Some probes may still be attached.
      EXPECT_THAT(actions, AnyOf(ElementsAre("fork", "exit"), ElementsAre("fork", "probe", "exit")));
      EXPECT_EQ(lost.size(), 1U) << "no loss is reported for " << pid;
      if (lost.empty()) continue;
      EXPECT_EQ(lost[0]["reason"], "unprobed");
      EXPECT_EQ(lost[0]["from"], trace.action(pid, "fork")["ts"]);
      EXPECT_TRUE(!one.in_gap || lost[0]["to"] == trace.action(pid, "exit")["ts"]);
    }
    // A child that does not exec at once may have run OCaml code itself.
    constexpr std::uint64_t at_once_ns = 20'000'000;
    if (trace.actions(spawned) != Strings{"fork", "exit"}) continue;
    const std::uint64_t begin = trace.action(spawned, "fork")["ts"], end = trace.action(spawned, "exit")["ts"];
    EXPECT_TRUE(end - begin >= at_once_ns || trace.of(spawned, "lost").empty());
  }
}

TEST_F(RinglessLive, EventsHaveTheirProgram) {
  covers("ringless", "programs of one binary in an exec chain, one of them not selected");
  const auto wanted = dir / "wanted", other = dir / "other";
  std::filesystem::copy_file(ocaml_program("ringless"), wanted);
  std::filesystem::create_hard_link(wanted, other);
  struct Case {
    std::filesystem::path first, next;
    std::string collections_of_first, collections_of_next;
    std::size_t seen;
  };
  const Case cases[] = {{other, wanted, "300", "20", 40}, {wanted, other, "20", "300", 20}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.first.filename());
    Command command = program("ringless", {"storm", "1"});
    command.argv[0] = wanted;
    Process known(command);
    known.lines_until("ready");
    Tracer tracer({"--ringless", "-n", "wanted"});
    ASSERT_TRUE(ProbedCode(known.pid()).is_probed());
    command.argv = {one.first, "exec", one.collections_of_first, one.next, "storm", one.collections_of_next};
    Process process(command);
    // Keeps the process alive until the tracer has inspected it.
    for (const std::filesystem::path& image : {one.first, one.next}) {
      process.lines_until("ready");
      if (image == wanted) tracer.process().line_with("\"pid\":" + std::to_string(process.pid()) + ",");
      process.go();
    }
    process.close_stdin();
    EXPECT_EQ(process.wait().status.code(), 0);
    const Trace trace = tracer.stop();
    const std::vector<Json> events = events_of(trace, process.pid());
    EXPECT_EQ(count(events, "begin", "explicit_gc_minor"), one.seen);
    EXPECT_EQ(count(events, "end", "explicit_gc_minor"), one.seen);
    EXPECT_THAT(trace.actions(process.pid()), ElementsAre("exec", "probe", "exit"));
    EXPECT_TRUE(trace.of(process.pid(), "lost").empty());
    EXPECT_EQ(trace.summary["drops"]["limited"], 0) << "by a program that is not selected";
  }
}

TEST_F(RinglessLive, ProbesAreOffForAWhileBeyondTheLimit) {
  covers("ringless", "a program beyond the limit: probes off for a while, reported");
  Process process(program("ringless", {"storm", "20000"}));
  process.lines_until("ready");
  const ProbedCode code(process.pid());
  ASSERT_FALSE(code.is_probed());
  Strings arguments = for_pid(process);
  arguments.insert(arguments.end(), {"--ringless-limit", "1000"});
  Tracer tracer(arguments);
  EXPECT_TRUE(code.is_probed());
  process.go();
  process.lines_until("stormed");
  EXPECT_TRUE(code.becomes(false)) << "the probes are not removed";
  EXPECT_TRUE(code.becomes(true)) << "the probes are not attached again";
  process.go();
  process.lines_until("done");
  process.go();
  process.wait();
  const Trace trace = tracer.stop();
  const std::vector<Json> lost = trace.of(process.pid(), "lost");
  ASSERT_FALSE(lost.empty());
  std::uint64_t longest = 0;
  for (const Json& gap : lost) {
    EXPECT_EQ(gap["reason"], "unprobed");
    EXPECT_EQ(gap["words"], 0U);
    const std::uint64_t from = gap["from"], to = gap["to"];
    ASSERT_LT(from, to);
    longest = std::max(longest, to - from);
  }
  EXPECT_GT(longest, 900'000'000U) << "probes stay off for at least a second";
  EXPECT_GE(trace.summary["drops"]["limited"].get<int>(), 2);
  EXPECT_LT(events_of(trace, process.pid()).size(), 1000U);
  EXPECT_GT(events_of(trace, process.pid()).size(), 100U);
}

TEST_F(RinglessLive, LeavesNothingBehind) {
  covers("ringless", "no probe is left when the tracer ends, and the program continues");
  Process process(program("ringless", {"storm", "200"}));
  process.lines_until("ready");
  const ProbedCode code(process.pid());
  {
    Tracer tracer({"-p", std::to_string(process.pid())});
    EXPECT_FALSE(code.is_probed()) << "probed without --ringless";
    tracer.stop();
  }
  {
    Tracer tracer(for_pid(process));
    EXPECT_TRUE(code.is_probed());
    process.go();
    process.lines_until("stormed");
    const Trace trace = tracer.stop();
    EXPECT_EQ(count(events_of(trace, process.pid()), "begin", "explicit_gc_minor"), 200U);
  }
  EXPECT_TRUE(code.becomes(false));
  process.go();
  process.lines_until("done");
  process.go();
  EXPECT_EQ(process.wait().status.code(), 0);
}

TEST_F(RinglessLive, OtherProcessesOfTheBinaryAreNotShown) {
  Process wanted(program("ringless", {"storm", "20"})), other(program("ringless", {"storm", "20"}));
  wanted.lines_until("ready");
  other.lines_until("ready");
  Tracer tracer(for_pid(wanted));
  for (Process* process : {&other, &wanted}) {
    process->close_stdin();
    process->wait();
  }
  const Trace trace = tracer.stop();
  EXPECT_TRUE(trace.from_rings(other.pid()).empty());
  EXPECT_EQ(count(events_of(trace, wanted.pid()), "begin", "explicit_gc_minor"), 40U);
}

TEST_F(RinglessLive, RecordedAndReadBack) {
  covers("ringless", "recorded and read back");
  Process process(program("ringless", {"work", "3"}));
  process.lines_until("ready");
  const std::string file = dir / "trace.fxt";
  Tracer tracer({"record", "--ringless", "-p", std::to_string(process.pid()), "-o", file}, {.format = {}});
  process.go();
  const int minors = said(process, "minor");
  process.lines_until("done");
  process.go();
  process.wait();
  tracer.interrupt();
  const Outcome dumped = run_tool({"dump", "-f", "jsonl", file});
  ASSERT_EQ(dumped.status.code(), 0) << dumped.err;
  const Trace trace = Trace::parse(dumped.out);
  EXPECT_EQ(count(events_of(trace, process.pid()), "begin", "minor"), minors);
  EXPECT_THAT(trace.actions(process.pid()), ElementsAre("found", "probe", "exit"));
}

}  // namespace
}  // namespace rtev::test
