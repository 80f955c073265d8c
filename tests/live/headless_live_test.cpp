// SPDX-License-Identifier: MIT
// Programs whose main thread ends before the process. /proc shows them as zombies, although other domains still run.

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

class HeadlessLive : public LiveTest {
 protected:
  /// Lets the program end, and checks that all its steps from `first` to the last were delivered.
  void expect_all(Tracer& tracer, Process& process, std::int64_t first, const Strings& actions) {
    EXPECT_EQ(run_through(process).status.code(), 5);
    const Trace trace = tracer.stop();
    const pid_t pid = process.pid();
    EXPECT_EQ(trace.actions(pid), actions);
    EXPECT_EQ(trace.action(pid, "exit")["status"], Json({{"code", 5}}));
    EXPECT_EQ(trace.action(pid, actions.front())["exe"], ocaml_program("headless"));
    EXPECT_EQ(trace.action(pid, "ring")["path"], ring_of(pid).string());
    auto expected = count_to(200);
    expected.erase(expected.begin(), expected.begin() + (first - 1));
    EXPECT_EQ(steps(trace, pid), expected);
    expect_exact(trace, dir.path(), pid);
    EXPECT_EQ(trace.summary["rings_missed"], 0);
  }
};

// "ready": the main thread has ended.

TEST_F(HeadlessLive, RunningProgramIsFoundAndDelivered) {
  covers("lifecycle", "main thread ended, a domain continues, found running");
  Process process(preserved("headless"), "ready");
  EXPECT_THAT(ps_line(process.pid()), HasSubstr(" active "));
  Tracer tracer({"--sched", "off", "--history"});
  expect_all(tracer, process, 1, {"found", "ring", "exit"});
}

TEST_F(HeadlessLive, NewProgramIsDelivered) {
  covers("lifecycle", "main thread ends, a domain continues");
  Tracer tracer({"--sched", "off"});
  Process process(preserved("headless"), "ready");
  expect_all(tracer, process, 1, {"exec", "ring", "exit"});
}

TEST_F(HeadlessLive, RingStartedAfterwardsIsDelivered) {
  covers("lifecycle", "main thread ended, then a domain starts the ring");
  Tracer tracer({"--sched", "off"});
  Process process(program("headless", {"late"}), "ready");
  expect_all(tracer, process, 101, {"exec", "ring", "exit"});
}

TEST_F(HeadlessLive, RingStartedByAFoundProgramIsDelivered) {
  covers("lifecycle", "main thread ended, found running, then a domain starts the ring");
  Process process(program("headless", {"late"}), "ready");
  EXPECT_THAT(ps_line(process.pid()), HasSubstr(" none "));
  Tracer tracer({"--sched", "off"});
  expect_all(tracer, process, 101, {"found", "ring", "exit"});
}

}  // namespace
}  // namespace rtev::test
