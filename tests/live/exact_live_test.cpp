// SPDX-License-Identifier: MIT
// Every event exactly once and in order: compares the stream with the ring file of the same run, as read by OCaml
// itself.
#include <signal.h>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

struct Run {
  const char* label;
  const char* program;
  Strings arguments;
  int status;
};

class ExactLive : public LiveTest, public ::testing::WithParamInterface<Run> {};

TEST_P(ExactLive, NewProgramMatchesItsRing) {
  Tracer tracer({"--sched", "off"});
  const pid_t pid = run_to_end(preserved(GetParam().program, GetParam().arguments), GetParam().status);
  expect_exact(tracer.stop(), dir.path(), pid);
}

/// Programs that wait until the tracer has started.
class ExactHistoryLive : public ExactLive {};

TEST_P(ExactHistoryLive, RunningProgramMatchesItsRing) {
  Process process(preserved(GetParam().program, GetParam().arguments), "ready");
  Tracer tracer({"--sched", "off", "--history"});
  EXPECT_EQ(run_through(process).status.code(), GetParam().status);
  expect_exact(tracer.stop(), dir.path(), process.pid());
}

TEST_P(ExactLive, DumpMatchesThePreservedRing) {
  const pid_t pid = run_to_end(preserved(GetParam().program, GetParam().arguments), GetParam().status);
  EXPECT_EQ(difference(oracle(dir.path(), pid), records(dumped(ring_of(pid)).from_rings(pid))), "");
}

const auto gated = ::testing::Values(
    Run{"BusyAlloc", "busy_alloc", {"20"}, 0}, Run{"Domains", "domains", {"3", "3"}, 0},
    Run{"UserEvents", "user_events", {}, 0}, Run{"Systhreads", "systhreads", {"3"}, 0},
    Run{"Instrumented", "alloc_buckets", {}, 0}, Run{"Uncaught", "uncaught", {}, 2}, Run{"Forker", "forker", {}, 0});

INSTANTIATE_TEST_SUITE_P(Programs, ExactLive, gated, by_label);
INSTANTIATE_TEST_SUITE_P(Short, ExactLive, ::testing::Values(Run{"Hello", "hello", {}, 0}), by_label);
INSTANTIATE_TEST_SUITE_P(Programs, ExactHistoryLive, gated, by_label);

class DeliveryLive : public LiveTest {};

TEST_F(DeliveryLive, DeliversAllEventsUpToSigkill) {
  Tracer tracer({"--sched", "off"});
  Process process(with_events("killed"), "ready");
  process.go_until("busy");
  process.signal(SIGKILL);
  process.wait();
  expect_exact(tracer.stop(), dir.path(), process.pid());
}

TEST_F(DeliveryLive, DeliversShortProgramsOfUnknownBinaries) {
  Tracer tracer({"--sched", "off"});
  std::vector<pid_t> pids;
  for (int i = 0; i < 20; ++i) {
    // A copy is a new binary for the tracer: not inspected, not probed.
    pids.push_back(run_to_end(copied(preserved("hello"), "hello" + std::to_string(i))));
  }
  const Trace trace = tracer.stop();
  for (const pid_t pid : pids) expect_exact(trace, dir.path(), pid);
}

/// The tracer is stopped (SIGSTOP) and learns of everything later.
class StoppedTracerLive : public DeliveryLive {};

TEST_F(StoppedTracerLive, PreservedRingIsReadToItsEnd) {
  Tracer tracer({"--sched", "off"});
  tracer.process().stop();
  const pid_t hello = run_to_end(preserved("hello")), again = run_to_end(preserved("hello")),
              uncaught = run_to_end(with_events("uncaught"), 2);
  Process killed(with_events("killed"), "ready");
  killed.signal(SIGKILL);
  killed.wait();
  tracer.process().resume();
  const Trace trace = tracer.stop();
  for (const pid_t pid : {hello, again, uncaught, killed.pid()}) {
    expect_exact(trace, dir.path(), pid);
    EXPECT_THAT(trace.actions(pid), IsSupersetOf({"ring", "exit"}));
    EXPECT_EQ(trace.action(pid, "ring")["path"], ring_of(pid).string());
  }
  EXPECT_EQ(trace.of(hello, "process").front()["exe"], ocaml_program("hello"));
  EXPECT_EQ(trace.action(hello, "exit")["status"], Json({{"code", 0}}));
  EXPECT_EQ(trace.action(killed.pid(), "exit")["status"], Json({{"signal", SIGKILL}}));
  EXPECT_EQ(trace.summary["rings_missed"], 0);
}

TEST_F(StoppedTracerLive, RemovedRingIsCountedAsMissed) {
  Tracer tracer({"--sched", "off"});
  tracer.process().stop();
  const pid_t hello = run_to_end(with_events("hello"));
  tracer.process().resume();
  const Trace trace = tracer.stop();
  EXPECT_EQ(trace.summary["rings_missed"], 1);
  EXPECT_THAT(trace.actions(hello), ElementsAre("exec", "exit"));
  EXPECT_THAT(trace.from_rings(hello), IsEmpty());
}

/// The second program gets the first one's pid and ring file. The first one's ring was saved before, and no event is
/// attributed to the wrong program.
TEST_F(StoppedTracerLive, RingReusedAtExecBelongsToTheNextProgram) {
  Tracer tracer({"--sched", "off", "--save-rings", "all"});
  tracer.process().stop();
  const pid_t chain = run_to_end(preserved("exec_chain", {ocaml_program("hello")}));
  tracer.process().resume();
  const Trace trace = tracer.stop();
  std::map<std::string, std::vector<Json>> events;
  for (const Json& event : trace.from_rings(chain)) events[event["comm"]].push_back(event);
  EXPECT_EQ(difference(oracle(dir.path(), chain), records(events["hello"])), "");
  EXPECT_FALSE(events["exec_chain"].empty());
  EXPECT_EQ(events.size(), 2u);
  EXPECT_EQ(trace.summary["rings_missed"], 0);
}

TEST_F(DeliveryLive, DumpOfARunningProcessMatchesItsRing) {
  Process process(preserved("busy_alloc", {"3"}), "ready");
  process.go_until("done");
  const Records held = oracle(dir.path(), process.pid());
  EXPECT_EQ(difference(held, records(dumped(std::to_string(process.pid())).from_rings(process.pid()))), "");
  EXPECT_TRUE(process.running());
}

TEST_F(DeliveryLive, ForcedVersionDecodesWithItsTable) {
  const pid_t pid = run_to_end(preserved("busy_alloc", {"3"}));
  const Records right = oracle(dir.path(), pid),
                wrong = records(dumped(ring_of(pid), {"--ocaml-version", "5.2"}).from_rings(pid));
  // Phase 11 is the minor collection since 5.3; before, it was the scan of local roots.
  EXPECT_GT(count(right, "begin", "minor"), 0u);
  EXPECT_EQ(count(wrong, "begin", "minor_local_roots"), count(right, "begin", "minor"));
}

}  // namespace
}  // namespace rtev::test
