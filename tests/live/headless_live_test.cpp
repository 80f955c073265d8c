// SPDX-License-Identifier: MIT
// Programs whose main thread ends before they do. /proc shows them as zombies, though other domains live on.
#include <gmock/gmock.h>

#include "live/harness.hpp"
#include "live/life.hpp"
#include "live/matrix.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

using ::testing::HasSubstr;

class HeadlessLifeLive : public LiveTest {
 protected:
  /// The line of `ps` for a process.
  static std::string listed(pid_t pid) { return run_tool({"ps", "-d", "1ms", "-p", std::to_string(pid)}).out; }

  /// Lets the program come to its end, and checks that all of its steps from `first` on were delivered, to the last.
  void expect_all(Tracer& tracer, Process& process, std::int64_t first, const std::vector<std::string>& actions) {
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

TEST_F(HeadlessLifeLive, FoundRunning) {
  covers("life", "main thread ended, a domain lives on, found running");
  Process process(preserved("headless"));
  process.lines_until("ready");  // its main thread has ended
  EXPECT_THAT(listed(process.pid()), HasSubstr(" active "));
  Tracer tracer({"--sched", "off", "--history"});
  expect_all(tracer, process, 1, {"found", "ring", "exit"});
}

TEST_F(HeadlessLifeLive, UnderTheTracer) {
  covers("life", "main thread ends, a domain lives on");
  Tracer tracer({"--sched", "off"});
  Process process(preserved("headless"));
  process.lines_until("ready");  // its main thread has ended
  expect_all(tracer, process, 1, {"exec", "ring", "exit"});
}

TEST_F(HeadlessLifeLive, RingThatIsStartedAfterwards) {
  covers("life", "main thread ended, then a domain starts the ring");
  Tracer tracer({"--sched", "off"});
  Process process(program("headless", {"late"}));
  process.lines_until("ready");  // its main thread has ended
  expect_all(tracer, process, 101, {"exec", "ring", "exit"});
}

TEST_F(HeadlessLifeLive, FoundBeforeItsRing) {
  covers("life", "main thread ended, found running, then a domain starts the ring");
  Process process(program("headless", {"late"}));
  process.lines_until("ready");  // its main thread has ended
  EXPECT_THAT(listed(process.pid()), HasSubstr(" none "));
  Tracer tracer({"--sched", "off"});
  expect_all(tracer, process, 101, {"found", "ring", "exit"});
}

}  // namespace
}  // namespace rtev::test
