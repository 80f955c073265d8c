// SPDX-License-Identifier: MIT
// Programs with events off, traced by probes: compared with their own output, and with the ring of another run.
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>

#include "inspect/binary.hpp"
#include "inspect/procfs.hpp"
#include "live/harness.hpp"
#include "live/oracle.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

/// Detects in a program's memory whether its functions that write events are probed.
class ProbedCode {
 public:
  /// For a running OCaml program. Throws if its functions are not found.
  explicit ProbedCode(pid_t pid);

  /// True if the instruction is replaced by a breakpoint.
  bool is_probed() const;
  /// Waits until is_probed() has this value; returns false on timeout.
  bool becomes(bool probed) const;

 private:
  pid_t pid_;
  std::uint64_t address_ = 0;
  std::uint8_t original_ = 0;  ///< the byte in the file
};

ProbedCode::ProbedCode(pid_t pid) : pid_(pid) {
  const Procfs procfs;
  const auto program = procfs.open_exe(pid);
  const auto runtime = program ? inspect_binary(program->get()).value_or(std::nullopt) : std::nullopt;
  if (!runtime || runtime->emitters.empty()) throw std::runtime_error("found no functions that write events");
  const std::uint64_t offset = runtime->emitters.front().file_offset;
  const std::string path = procfs.exe_path(pid);
  procfs.visit_mappings(pid, [&](const Mapping& mapping) {
    if (mapping.path == path && offset >= mapping.offset && offset - mapping.offset < mapping.end - mapping.begin)
      address_ = mapping.begin + (offset - mapping.offset);
    return true;
  });
  if (address_ == 0 || ::pread(program->get(), &original_, 1, static_cast<off_t>(offset)) != 1)
    throw std::runtime_error("the code of the program is not mapped");
}

bool ProbedCode::is_probed() const {
  const auto word = Procfs().read_word(pid_, address_);
  return word && static_cast<std::uint8_t>(*word) != original_;
}

bool ProbedCode::becomes(bool probed) const {
  return poll_until([&] { return is_probed() == probed; });
}

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

/// The numbers after each occurrence of a word in a program's output.
std::vector<int> numbers_after(const std::string& word, const std::string& out) {
  std::vector<int> numbers;
  std::istringstream words(out);
  for (std::string each; words >> each;)
    if (int number = 0; each == word && words >> number) numbers.push_back(number);
  return numbers;
}

class RinglessLive : public LiveTest {
 protected:
  static Strings for_pid(const Process& process) { return {"--ringless", "-p", std::to_string(process.pid())}; }
};

TEST_F(RinglessLive, ProbesSeeTheEventsOfARing) {
  covers("ringless", "the same events as in the ring of another run");
  constexpr const char* heaps = "30";
  Process with_ring(with_events("ringless", {"work", heaps}), "ready");
  Process without(program("ringless", {"work", heaps}), "ready");
  Tracer tracer({"--ringless", "-p", std::to_string(with_ring.pid()), "-p", std::to_string(without.pid())});
  run_through(with_ring);
  const std::string out = run_through(without).out;
  const Trace trace = tracer.stop();
  const std::vector<Json> probed = events_of(trace, without.pid());
  EXPECT_EQ(between_marks(probed), between_marks(events_of(trace, with_ring.pid())));
  EXPECT_THAT(numbers_after("minor", out), ElementsAre(count(probed, "begin", "minor")));
  EXPECT_TRUE(nests(probed));
  EXPECT_TRUE(trace.of(without.pid(), "lost").empty());
  expect_all_delivered(trace, without.pid());
  EXPECT_THAT(trace.actions(without.pid()), ElementsAre("found", "probe", "exit"));
  EXPECT_THAT(trace.actions(with_ring.pid()), ElementsAre("found", "ring", "stop", "exit"));
}

TEST_F(RinglessLive, KnownBinaryIsProbedFromItsFirstEvent) {
  covers("ringless", "started after the tracer");
  Process known(program("ringless", {"work", "1"}), "ready");
  Tracer tracer({"--ringless", "-n", "ringless"});
  Process process(program("ringless", {"work", "5"}));
  const std::string out = run_through(process).out;
  const pid_t again = run_to_end(program("ringless", {"work", "5"}));
  const Trace trace = tracer.stop();
  for (const pid_t pid : {process.pid(), again}) {
    const std::vector<Json> events = events_of(trace, pid);
    EXPECT_THAT(numbers_after("minor", out), ElementsAre(Le(count(events, "begin", "minor"))));
    EXPECT_TRUE(nests(events));
    EXPECT_EQ(between_marks(events), between_marks(events_of(trace, process.pid())));
    EXPECT_TRUE(trace.of(pid, "lost").empty());
    EXPECT_THAT(trace.actions(pid), ElementsAre("exec", "probe", "exit"));
  }
}

TEST_F(RinglessLive, EventsBeforeTheProbesAreReportedAsLost) {
  covers("ringless", "an unknown binary: missing events of its first process are reported");
  Tracer tracer({"--ringless", "-n", "ringless"});
  Process process(copied(program("ringless", {"work", "3"}), "ringless"), "ready");
  ASSERT_TRUE(ProbedCode(process.pid()).becomes(true));
  const std::string out = run_through(process).out;
  const Trace trace = tracer.stop();
  const std::vector<Json> lost = trace.of(process.pid(), "lost");
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0]["reason"], "unprobed");
  EXPECT_EQ(lost[0]["from"], trace.action(process.pid(), "exec")["ts"]);
  EXPECT_EQ(lost[0]["to"], trace.action(process.pid(), "probe")["ts"]);
  const std::vector<Json> events = events_of(trace, process.pid());
  EXPECT_THAT(numbers_after("minor", out), ElementsAre(count(events, "begin", "minor")));
  EXPECT_TRUE(nests(events));
}

TEST_F(RinglessLive, ShortProgramsAreProbedOrReportedAsLost) {
  covers("ringless", "100 programs of a few milliseconds in a row: each complete or reported as a loss");
  const Command command = copied(program("ringless", {"storm", "5"}), "short");
  Tracer tracer({"--ringless", "-n", "short", "--sched", "off"});
  std::vector<pid_t> pids;
  for (int i = 0; i < 100; ++i) pids.push_back(run_to_end(command));
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
  Process process(program("ringless", {"domains", "3"}), "ready");
  Tracer tracer(for_pid(process));
  const Strings lines = process.go_until("done");
  run_through(process);
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
  Process process(program("ringless", {"midway", std::to_string(collections)}), "ready");
  Tracer tracer(for_pid(process));
  run_through(process);
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

TEST_F(RinglessLive, StrippedProgramIsProbed) {
  covers("ringless", "stripped");
  const Command command = copied(program("ringless", {"domains", "2"}), "stripped");
  ASSERT_EQ(run({.argv = {"strip", command.argv[0]}}).status.code(), 0);
  Process process(command, "ready");
  Tracer tracer(for_pid(process));
  run_through(process);
  const std::vector<Json> events = events_of(tracer.stop(), process.pid());
  EXPECT_EQ(count(events, "begin", "explicit_gc_major_slice", 1), 20U);
  EXPECT_EQ(count(events, "begin", "explicit_gc_major_slice", 2), 30U);
}

TEST_F(RinglessLive, ForkedChildIsProbed) {
  covers("ringless", "a forked child");
  Process known(program("ringless", {"fork", "20"}), "ready");
  Tracer tracer({"--ringless", "-n", "ringless"});
  const pid_t child = numbers_after("child", run_through(known).out).at(0);
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
  constexpr std::size_t children = 4, collections = 50;
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    Strings arguments{"--ringless", "-n", "nursery"};
    arguments.insert(arguments.end(), one.options.begin(), one.options.end());
    fs::remove(dir / "nursery");
    const Command command =
        copied(program("ringless", {"nursery", std::to_string(collections), std::to_string(children)}), "nursery");
    Tracer tracer(arguments);
    Process process(command, "ready");
    if (one.in_gap) {
      const ProbedCode code(process.pid());
      ASSERT_TRUE(code.becomes(true));
      process.go_until("stormed");
      ASSERT_TRUE(code.becomes(false)) << "the probes are not removed";
    }
    const std::string out = run_through(process).out;
    const pid_t spawned = numbers_after("spawned", out).at(0);
    const Trace trace = tracer.stop();
    const std::vector<int> pids = numbers_after("child", out);
    ASSERT_EQ(pids.size(), children);
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

TEST_F(RinglessLive, EventsAreAttributedToTheirProgramAcrossExec) {
  covers("ringless", "programs of one binary in an exec chain, one of them not selected");
  Command command = copied(program("ringless", {"storm", "1"}), "wanted");
  const fs::path wanted = dir / "wanted", other = dir / "other";
  fs::create_hard_link(wanted, other);
  struct Case {
    fs::path first, next;
    std::string collections_of_first, collections_of_next;
    std::size_t seen;
  };
  const Case cases[] = {{other, wanted, "300", "20", 40}, {wanted, other, "20", "300", 20}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.first.filename());
    command.argv = {wanted, "storm", "1"};
    Process known(command, "ready");
    Tracer tracer({"--ringless", "-n", "wanted"});
    ASSERT_TRUE(ProbedCode(known.pid()).is_probed());
    command.argv = {one.first, "exec", one.collections_of_first, one.next, "storm", one.collections_of_next};
    Process process(command);
    // Keeps the process alive until the tracer has inspected it.
    for (const fs::path& image : {one.first, one.next}) {
      process.lines_until("ready");
      if (image == wanted) tracer.process().line_with("\"pid\":" + std::to_string(process.pid()) + ",");
      process.go();
    }
    EXPECT_EQ(run_through(process).status.code(), 0);
    const Trace trace = tracer.stop();
    const std::vector<Json> events = events_of(trace, process.pid());
    EXPECT_EQ(count(events, "begin", "explicit_gc_minor"), one.seen);
    EXPECT_EQ(count(events, "end", "explicit_gc_minor"), one.seen);
    EXPECT_THAT(trace.actions(process.pid()), ElementsAre("exec", "probe", "exit"));
    EXPECT_TRUE(trace.of(process.pid(), "lost").empty());
    EXPECT_EQ(trace.summary["drops"]["limited"], 0) << "by a program that is not selected";
  }
}

TEST_F(RinglessLive, ProbesArePausedBeyondTheLimit) {
  covers("ringless", "a program beyond the limit: probes off for a while, reported");
  Process process(program("ringless", {"storm", "20000"}), "ready");
  const ProbedCode code(process.pid());
  ASSERT_FALSE(code.is_probed());
  Strings arguments = for_pid(process);
  arguments.insert(arguments.end(), {"--ringless-limit", "1000"});
  Tracer tracer(arguments);
  EXPECT_TRUE(code.is_probed());
  process.go_until("stormed");
  EXPECT_TRUE(code.becomes(false)) << "the probes are not removed";
  EXPECT_TRUE(code.becomes(true)) << "the probes are not attached again";
  run_through(process);
  const Trace trace = tracer.stop();
  const std::vector<Json> lost = trace.of(process.pid(), "lost");
  ASSERT_FALSE(lost.empty());
  std::uint64_t longest = 0;
  for (const Json& gap : lost) {
    EXPECT_EQ(gap["reason"], "unprobed");
    EXPECT_EQ(gap["words"], nullptr);
    const std::uint64_t from = gap["from"], to = gap["to"];
    ASSERT_LT(from, to);
    longest = std::max(longest, to - from);
  }
  EXPECT_GT(longest, 900'000'000U) << "probes stay off for at least a second";
  EXPECT_GE(trace.summary["drops"]["limited"].get<int>(), 2);
  EXPECT_LT(events_of(trace, process.pid()).size(), 1000U);
  EXPECT_GT(events_of(trace, process.pid()).size(), 100U);
}

TEST_F(RinglessLive, AProgramBeyondTheLimitDoesNotHideThoseOfOtherUsers) {
  covers("ringless", "a program beyond the limit: other users of its binary are traced without a gap");
  Command command = copied(program("ringless", {"storm", "1000000000"}), "shared");
  command.user = nobody;
  Process fast(command, "ready");
  command.argv[2] = "20";
  command.user.reset();
  Process other(command, "ready");
  const ProbedCode code(other.pid());
  Tracer tracer({"--ringless", "-n", "shared", "--sched", "off"});
  ASSERT_TRUE(code.is_probed());
  fast.go();
  // It reports again after a pause: then the loss is shown.
  tracer.process().line_with("\"unprobed\"");
  EXPECT_TRUE(code.is_probed());
  other.go_until("stormed");
  const pid_t again = run_to_end(command);
  EXPECT_TRUE(code.is_probed());
  run_through(other);
  fast.signal(SIGKILL);
  fast.wait();
  const Trace trace = tracer.stop();
  for (const pid_t pid : {other.pid(), again}) {
    EXPECT_EQ(count(events_of(trace, pid), "begin", "explicit_gc_minor"), 40U);
    EXPECT_TRUE(trace.of(pid, "lost").empty());
  }
  const std::vector<Json> lost = trace.of(fast.pid(), "lost");
  ASSERT_FALSE(lost.empty());
  EXPECT_EQ(lost[0]["reason"], "unprobed");
  EXPECT_EQ(lost[0]["words"], nullptr);
  EXPECT_GE(lost[0]["to"].get<std::uint64_t>() - lost[0]["from"].get<std::uint64_t>(), RTEV_RINGLESS_MIN_PAUSE_NS);
  EXPECT_GE(trace.summary["drops"]["limited"], 1);
}

TEST_F(RinglessLive, ProbesAreRemovedAtTheEnd) {
  covers("ringless", "no probe is left when the tracer ends, and the program continues");
  Process process(program("ringless", {"storm", "200"}), "ready");
  const ProbedCode code(process.pid());
  {
    Tracer tracer({"-p", std::to_string(process.pid())});
    EXPECT_FALSE(code.is_probed()) << "probed without --ringless";
    tracer.stop();
  }
  {
    Tracer tracer(for_pid(process));
    EXPECT_TRUE(code.is_probed());
    process.go_until("stormed");
    const Trace trace = tracer.stop();
    EXPECT_EQ(count(events_of(trace, process.pid()), "begin", "explicit_gc_minor"), 200U);
  }
  EXPECT_TRUE(code.becomes(false));
  EXPECT_EQ(run_through(process).status.code(), 0);
}

TEST_F(RinglessLive, OtherProcessesOfTheBinaryAreNotShown) {
  Process wanted(program("ringless", {"storm", "20"}), "ready"), other(program("ringless", {"storm", "20"}), "ready");
  Tracer tracer(for_pid(wanted));
  for (Process* process : {&other, &wanted}) run_through(*process);
  const Trace trace = tracer.stop();
  EXPECT_TRUE(trace.from_rings(other.pid()).empty());
  EXPECT_EQ(count(events_of(trace, wanted.pid()), "begin", "explicit_gc_minor"), 40U);
}

TEST_F(RinglessLive, RecordingHasTheProbedEvents) {
  covers("ringless", "recorded and read back");
  Process process(program("ringless", {"work", "3"}), "ready");
  const std::string file = dir / "trace.fxt";
  Tracer tracer({"record", "--ringless", "-p", std::to_string(process.pid()), "-o", file}, {.format = {}});
  const std::string out = run_through(process).out;
  tracer.interrupt();
  const Trace trace = dumped(file);
  EXPECT_THAT(numbers_after("minor", out), ElementsAre(count(events_of(trace, process.pid()), "begin", "minor")));
  EXPECT_THAT(trace.actions(process.pid()), ElementsAre("found", "probe", "exit"));
}

}  // namespace
}  // namespace rtev::test
