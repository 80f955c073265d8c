// SPDX-License-Identifier: MIT
// However a program ends, all its events are delivered and its exit status is the one of wait(2).
#include <signal.h>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

class EndLive : public LiveTest {
 protected:
  struct End {
    std::string how;
    Json status;
    bool has_end_event;  ///< whether its ring has an end event
  };

  void expect_reported(const std::vector<End>& ends) {
    Tracer tracer({"--sched", "off"});
    std::vector<pid_t> pids;
    for (const End& end : ends) {
      SCOPED_TRACE(end.how);
      Command command = preserved("ends", {end.how});
      command.argv.insert(command.argv.begin(), {"sh", "-c", R"(ulimit -c 0; exec "$0" "$@")"});  // no core files
      Process process(command);
      const ExitStatus status = run_through(process).status;
      if (const auto code = status.code()) {
        EXPECT_EQ(end.status, Json({{"code", *code}}));
      } else {
        EXPECT_EQ(end.status, Json({{"signal", status.signal().value_or(0)}}));
      }
      pids.push_back(process.pid());
    }
    const Trace trace = tracer.stop();
    for (std::size_t i = 0; i < ends.size(); ++i) {
      SCOPED_TRACE(ends[i].how);
      expect_exact(trace, dir.path(), pids[i]);
      EXPECT_EQ(steps(trace, pids[i]), count_to(100));
      EXPECT_EQ(trace.actions(pids[i]),
                (ends[i].has_end_event ? Strings{"exec", "ring", "stop", "exit"} : Strings{"exec", "ring", "exit"}));
      EXPECT_EQ(trace.action(pids[i], "exit")["status"], ends[i].status);
      EXPECT_EQ(trace.process(pids[i])["ring"], ends[i].has_end_event ? "stopped" : "ended");
    }
    EXPECT_EQ(trace.summary["rings_missed"], 0);
  }
};

TEST_F(EndLive, DeliversAllEventsBeforeEveryFatalSignal) {
  covers("lifecycle", "ended by each fatal signal");
  std::vector<End> ends;
  for (const int number : {SIGHUP,    SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,  SIGBUS,    SIGFPE,  SIGKILL,
                           SIGUSR1,   SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM,  SIGSTKFLT, SIGXCPU, SIGXFSZ,
                           SIGVTALRM, SIGPROF, SIGPOLL, SIGPWR,  SIGSYS,  SIGRTMIN, SIGRTMAX})
    ends.push_back({.how = "signal:" + std::to_string(number), .status = {{"signal", number}}, .has_end_event = false});
  expect_reported(ends);
}

TEST_F(EndLive, DeliversAllEventsBeforeEveryKindOfExit) {
  covers("lifecycle", "exit, Unix._exit, uncaught exception");
  expect_reported({{.how = "exit:0", .status = {{"code", 0}}, .has_end_event = true},
                   {.how = "exit:255", .status = {{"code", 255}}, .has_end_event = true},
                   {.how = "_exit:0", .status = {{"code", 0}}, .has_end_event = false},
                   {.how = "_exit:7", .status = {{"code", 7}}, .has_end_event = false},
                   {.how = "uncaught", .status = {{"code", 2}}, .has_end_event = false}});
}

}  // namespace
}  // namespace rtev::test
