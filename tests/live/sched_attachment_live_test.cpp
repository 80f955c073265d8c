// SPDX-License-Identifier: MIT
// The BPF programs of the scheduler are attached only while traced processes live. The tracers here trace programs of
// one name only: other programs of the host may be OCaml's, too.

#include "live/harness.hpp"
#include "live/oracle.hpp"
#include "support/tracepoints.hpp"

namespace rtev::test {
namespace {

class SchedAttachmentLive : public LiveTest {
 protected:
  static constexpr const char* name = "lonely";
  Command lonely(const std::string& what, const std::string& argument) const {
    fs::remove(dir / name);  // it may be in use
    return copied(preserved(what, {argument}), name);
  }
  /// It was asleep when they were attached. A short one may run without a break until it ends.
  static bool is_entered(const Trace& trace, pid_t pid) {
    return std::ranges::any_of(trace.of("switch"), [&](const Json& event) { return event["next"]["pid"] == pid; });
  }
};

TEST_F(SchedAttachmentLive, ProgramsThatRunAloneAreTracedWhole) {
  Tracer tracer({"-n", name});
  const pid_t tracer_pid = tracer.process().pid();
  EXPECT_TRUE(tracepoints_of(tracer_pid).contains("sched_switch")) << "from the start on";
  std::vector<pid_t> pids;
  for (const auto& [what, argument] : {std::pair("busy_alloc", "20"), {"domains", "3"}}) {
    ASSERT_TRUE(await_sched_programs(tracer_pid, false));
    const auto tracepoints = tracepoints_of(tracer_pid);
    EXPECT_THAT(tracepoints,
                Not(AnyOf(Contains("sched_waking"), Contains("sched_wakeup_new"), Contains("hrtimer_expire_entry"))));
    EXPECT_THAT(tracepoints, Contains("sched_process_exec"));
    Process process(lonely(what, argument), "ready");
    ASSERT_TRUE(await_sched_programs(tracer_pid, true));
    run_through(process);
    pids.push_back(process.pid());
  }
  // One that does not wait until they are attached, and may have ended before.
  ASSERT_TRUE(await_sched_programs(tracer_pid, false));
  Process brief(lonely("ends", "exit:0"));
  run_through(brief);
  const Trace trace = tracer.stop();
  // If switches were missed, many events would be late. One or two may be: a first write to a page can take long.
  EXPECT_LE(trace.summary["late"], 2) << trace.summary;
  for (const pid_t pid : pids) {
    expect_exact(trace, dir.path(), pid);
    EXPECT_TRUE(is_entered(trace, pid));
  }
  expect_exact(trace, dir.path(), brief.pid());
}

TEST_F(SchedAttachmentLive, ProgramsThatExecAtOnceAreTracedWhole) {
  constexpr int images = 10;
  Command command = preserved("chain");
  command.argv = {"sh", "-c", R"(exec "$0" "$@")"};
  for (int i = 0; i < images; ++i) {
    const fs::path file = dir / (name + std::to_string(i));
    fs::copy_file(ocaml_program("chain"), file);
    command.argv.insert(command.argv.end(), {file, "30"});
  }
  Tracer tracer({"-n", std::string(name) + "*", "--save-rings", "all"});
  ASSERT_TRUE(await_sched_programs(tracer.process().pid(), false));
  Process process(command);
  run_through(process);
  const Trace trace = tracer.stop();
  for (int i = 0; i < images; ++i) EXPECT_EQ(steps(trace, process.pid(), name + std::to_string(i)), count_to(30)) << i;
  EXPECT_EQ(trace.summary["rings_missed"], 0) << trace.summary << "\n" << Json(trace.of(process.pid(), "process"));
}

TEST_F(SchedAttachmentLive, TheyAreDetachedWithoutSchedulerEventsToo) {
  Tracer tracer({"-n", name, "--sched", "off"});
  const pid_t tracer_pid = tracer.process().pid();
  ASSERT_TRUE(await_sched_programs(tracer_pid, false));
  Process process(lonely("busy_alloc", "20"), "ready");
  ASSERT_TRUE(await_sched_programs(tracer_pid, true));
  run_through(process);
  ASSERT_TRUE(await_sched_programs(tracer_pid, false));
  expect_exact(tracer.stop(), dir.path(), process.pid());
}

TEST_F(SchedAttachmentLive, TheyStayAttachedIfAllThreadsAreTraced) {
  Tracer all({"-n", name, "--sched", "all"}), later({"-n", name});
  ASSERT_TRUE(await_sched_programs(later.process().pid(), false));
  EXPECT_TRUE(tracepoints_of(all.process().pid()).contains("sched_switch"));
  for (Tracer* const tracer : {&all, &later}) {
    tracer->process().signal(SIGINT);
    EXPECT_EQ(tracer->process().wait().status.code(), 1) << "no program of this name ran";
  }
}

TEST_F(SchedAttachmentLive, TracerEndsWhileTheyAreBeingAttached) {
  Tracer tracer({"-n", name});
  ASSERT_TRUE(await_sched_programs(tracer.process().pid(), false));
  Process process(lonely("busy_alloc", "20"), "ready");
  tracer.stop();
  run_through(process);
}

}  // namespace
}  // namespace rtev::test
