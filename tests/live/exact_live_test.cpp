// SPDX-License-Identifier: MIT
// Every event exactly once and in order: compares the stream with the ring file of the same run, as read by OCaml
// itself.
#include <gmock/gmock.h>
#include <signal.h>

#include "live/harness.hpp"
#include "live/oracle.hpp"
#include "live/process_checks.hpp"

namespace rtev::test {
namespace {

using Strings = std::vector<std::string>;

struct Run {
  const char* label;
  const char* program;
  Strings arguments;
  int status;
};

void PrintTo(const Run& run, std::ostream* out) {
  *out << run.label;
}

class ExactLive : public LiveTest, public ::testing::WithParamInterface<Run> {};

TEST_P(ExactLive, StartedUnderTheTracer) {
  Tracer tracer({"--sched", "off"});
  Process process(preserved(GetParam().program, GetParam().arguments));
  EXPECT_EQ(run_through(process).status.code(), GetParam().status);
  expect_exact(tracer.stop(), dir.path(), process.pid());
}

/// Programs that wait until the tracer has started.
class ExactHistoryLive : public ExactLive {};

TEST_P(ExactHistoryLive, StartedBeforeTheTracer) {
  Process process(preserved(GetParam().program, GetParam().arguments));
  process.lines_until("ready");
  Tracer tracer({"--sched", "off", "--history"});
  EXPECT_EQ(run_through(process).status.code(), GetParam().status);
  expect_exact(tracer.stop(), dir.path(), process.pid());
}

TEST_P(ExactLive, DumpedFromThePreservedFile) {
  Process process(preserved(GetParam().program, GetParam().arguments));
  EXPECT_EQ(run_through(process).status.code(), GetParam().status);
  const Outcome dump = run_tool({"dump", "-f", "jsonl", ring_of(process.pid())});
  ASSERT_EQ(dump.status.code(), 0) << dump.err;
  const Trace trace = Trace::parse(dump.out);
  EXPECT_EQ(difference(oracle(dir.path(), process.pid()), records(trace.from_rings(process.pid()))), "");
}

const auto gated = ::testing::Values(
    Run{"BusyAlloc", "busy_alloc", {"20"}, 0}, Run{"Domains", "domains", {"3", "3"}, 0},
    Run{"UserEvents", "user_events", {}, 0}, Run{"Systhreads", "systhreads", {"3"}, 0},
    Run{"Instrumented", "alloc_buckets", {}, 0}, Run{"Uncaught", "uncaught", {}, 2}, Run{"Forker", "forker", {}, 0});
const auto label = [](const auto& run) { return std::string(run.param.label); };

INSTANTIATE_TEST_SUITE_P(Programs, ExactLive, gated, label);
INSTANTIATE_TEST_SUITE_P(Short, ExactLive, ::testing::Values(Run{"Hello", "hello", {}, 0}), label);
INSTANTIATE_TEST_SUITE_P(Programs, ExactHistoryLive, gated, label);

class DeliveryLive : public LiveTest {};

TEST_F(DeliveryLive, EveryEventOfAForkedChild) {
  Tracer tracer({"--sched", "off"});
  Process process(preserved("forker"));
  process.close_stdin();
  const pid_t child = std::stoi(process.lines_until("done").back().substr(std::string("child ").size()));
  process.wait();
  expect_exact(tracer.stop(), dir.path(), child);
}

TEST_F(DeliveryLive, EveryEventUpToSigkill) {
  Tracer tracer({"--sched", "off"});
  Process process(with_events("killed"));
  process.lines_until("ready");
  process.go();
  process.lines_until("busy");
  process.signal(SIGKILL);
  process.wait();
  expect_exact(tracer.stop(), dir.path(), process.pid());
}

TEST_F(DeliveryLive, EveryEventOfShortProgramsOfUnknownBinaries) {
  Tracer tracer({"--sched", "off"});
  std::vector<pid_t> pids;
  for (int i = 0; i < 20; ++i) {
    // A copy is a new binary for the tracer: not inspected, not probed.
    const auto copy = dir / ("hello" + std::to_string(i));
    std::filesystem::copy_file(ocaml_program("hello"), copy);
    Command command = preserved("hello");
    command.argv[0] = copy;
    Process process(command);
    EXPECT_EQ(run_through(process).status.code(), 0);
    pids.push_back(process.pid());
  }
  const Trace trace = tracer.stop();
  for (const pid_t pid : pids) expect_exact(trace, dir.path(), pid);
}

/// The tracer is stopped (SIGSTOP) and learns of everything later.
class StoppedTracerLive : public DeliveryLive {};

TEST_F(StoppedTracerLive, PreservedRingIsReadToItsEnd) {
  Tracer tracer({"--sched", "off"});
  stop(tracer.process());
  Process hello(preserved("hello")), again(preserved("hello")), uncaught(with_events("uncaught")),
      killed(with_events("killed"));
  EXPECT_EQ(run_through(hello).status.code(), 0);
  EXPECT_EQ(run_through(again).status.code(), 0);
  EXPECT_EQ(run_through(uncaught).status.code(), 2);
  killed.lines_until("ready");
  killed.signal(SIGKILL);
  killed.wait();
  tracer.process().signal(SIGCONT);
  const Trace trace = tracer.stop();
  for (const pid_t pid : {hello.pid(), again.pid(), uncaught.pid(), killed.pid()}) {
    expect_exact(trace, dir.path(), pid);
    EXPECT_THAT(trace.actions(pid), ::testing::IsSupersetOf({"ring", "exit"}));
    EXPECT_EQ(trace.action(pid, "ring")["path"], ring_of(pid).string());
  }
  EXPECT_EQ(trace.of(hello.pid(), "process").front()["exe"], ocaml_program("hello"));
  EXPECT_EQ(trace.action(hello.pid(), "exit")["status"], Json({{"code", 0}}));
  EXPECT_EQ(trace.action(killed.pid(), "exit")["status"], Json({{"signal", SIGKILL}}));
  EXPECT_EQ(trace.summary["rings_missed"], 0);
}

TEST_F(StoppedTracerLive, RemovedRingIsCountedAsMissed) {
  Tracer tracer({"--sched", "off"});
  stop(tracer.process());
  Process hello(with_events("hello"));
  EXPECT_EQ(run_through(hello).status.code(), 0);
  tracer.process().signal(SIGCONT);
  const Trace trace = tracer.stop();
  EXPECT_EQ(trace.summary["rings_missed"], 1);
  EXPECT_THAT(trace.actions(hello.pid()), ::testing::ElementsAre("found", "exit"));
  EXPECT_THAT(trace.from_rings(hello.pid()), ::testing::IsEmpty());
}

/// The second program gets the first one's pid and ring file. The first one's ring was saved before, and no event is
/// attributed to the wrong program.
TEST_F(StoppedTracerLive, RingTakenOverBelongsToTheNextProgram) {
  Tracer tracer({"--sched", "off", "--save-rings", "all"});
  stop(tracer.process());
  Process chain(preserved("exec_chain", {ocaml_program("hello")}));
  EXPECT_EQ(run_through(chain).status.code(), 0);
  tracer.process().signal(SIGCONT);
  const Trace trace = tracer.stop();
  std::map<std::string, std::vector<Json>> events;
  for (const Json& event : trace.from_rings(chain.pid())) events[event["comm"]].push_back(event);
  EXPECT_EQ(difference(oracle(dir.path(), chain.pid()), records(events["hello"])), "");
  EXPECT_FALSE(events["exec_chain"].empty());
  EXPECT_EQ(events.size(), 2u);
  EXPECT_EQ(trace.summary["rings_missed"], 0);
}

TEST_F(DeliveryLive, LossIsCountedAndShown) {
  // A ring of 256 words fills faster than any reader can read it.
  Command command = with_events("busy_alloc", {"200"});
  command.env["OCAMLRUNPARAM"] = "e=8";
  Process process(command);
  process.lines_until("ready");
  Tracer tracer({"--sched", "off"});
  run_through(process);
  const Trace trace = tracer.stop();
  std::uint64_t shown = 0;
  for (const Json& loss : trace.of(process.pid(), "lost")) {
    shown += loss["words"].get<std::uint64_t>();
    EXPECT_GE(loss["ts"], loss["to"]);
    EXPECT_TRUE(loss["from"].is_null() || loss["from"] <= loss["to"]) << loss;
  }
  auto words = trace.words(process.pid());
  EXPECT_EQ(words["lost"], shown);
  EXPECT_EQ(words["corrupt"], 0u);
  EXPECT_EQ(words["unread"], 0u);
  EXPECT_GT(words["delivered"], 0u);
}

TEST_F(DeliveryLive, DumpOfARunningProcessMatchesItsRing) {
  Process process(preserved("busy_alloc", {"3"}));
  process.lines_until("ready");
  process.go();
  process.lines_until("done");
  const Records held = oracle(dir.path(), process.pid());
  const Outcome dump = run_tool({"dump", "-f", "jsonl", std::to_string(process.pid())});
  ASSERT_EQ(dump.status.code(), 0) << dump.err;
  EXPECT_EQ(difference(held, records(Trace::parse(dump.out).from_rings(process.pid()))), "");
  EXPECT_TRUE(process.running());
}

TEST_F(DeliveryLive, ForcedVersionDecodesWithItsTable) {
  Process process(preserved("busy_alloc", {"3"}));
  run_through(process);
  const Outcome dump = run_tool({"dump", "-f", "jsonl", "--ocaml-version", "5.2", ring_of(process.pid())});
  ASSERT_EQ(dump.status.code(), 0) << dump.err;
  const Records wrong = records(Trace::parse(dump.out).from_rings(process.pid()));
  // Phase 11 is the minor collection since 5.3; before, it was the scan of local roots.
  const Records right = oracle(dir.path(), process.pid());
  EXPECT_GT(count(right, "begin", "minor"), 0u);
  EXPECT_EQ(count(wrong, "begin", "minor_local_roots"), count(right, "begin", "minor"));
}

}  // namespace
}  // namespace rtev::test
