// SPDX-License-Identifier: MIT
// Exec chains: the next OCaml program takes over the ring file at once. Words not read by then come from the ring that
// BPF saved before exec replaced the memory.
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>

#include "kernel/features.hpp"
#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

/// Step numbers of a process in the order they were written. Sorted by time, since late events are shown when they
/// arrive.
std::vector<std::int64_t> steps_by_time(const Trace& trace, pid_t pid) {
  std::vector<Json> events = trace.of(pid, "user");
  std::erase_if(events, [](const Json& event) { return event["name"] != "step"; });
  std::ranges::stable_sort(events, {}, [](const Json& event) { return event["ts"].get<std::uint64_t>(); });
  std::vector<std::int64_t> numbers;
  for (const Json& event : events) numbers.push_back(event["value"]);
  return numbers;
}

kernel::KernelVersion running_kernel() {
  return kernel::parse_kernel_version(read_file("/proc/sys/kernel/osrelease")).value_or(kernel::KernelVersion{});
}

struct ExecWay {
  const char* label;
  const char* save_rings;
  bool busy;     ///< whether other programs keep all cpus busy
  bool stopped;  ///< whether the tracer is stopped the whole time
};

class SavedAtExecLive : public LiveTest, public ::testing::WithParamInterface<ExecWay> {};

/// Each program prints what it writes. No event may be missing, duplicated, out of order or attributed to another
/// program.
TEST_P(SavedAtExecLive, DeliversEveryStepOfEveryProgram) {
  const ExecWay& way = GetParam();
  covers("lifecycle", std::string("fork and exec at once, and again, ") +
                          (way.stopped ? "under a stopped tracer"
                           : way.busy  ? "all cpus busy"
                                       : "idle cpus") +
                          " (--save-rings " + way.save_rings + ")");
  if (std::string(way.save_rings) == "known" && running_kernel() < kernel::KernelVersion{6, 10})
    GTEST_SKIP() << "Linux before 6.10: rings are saved at exec with --save-rings all only";
  if (way.busy) occupy_cpus();
  // Before the tracer is stopped, the binary is known and its functions are probed.
  Process known(program("relay", {"1"}));
  known.lines_until("done");
  Tracer tracer({"--sched", "off", "-n", "relay", "--save-rings", way.save_rings});
  if (way.stopped) tracer.process().stop();
  constexpr std::size_t programs = 8;
  Process process(with_events("relay", {std::to_string(programs)}));
  const Strings said = process.lines_until("done");
  EXPECT_EQ(run_through(process).status.code(), 0);
  if (way.stopped) tracer.process().resume();
  const Trace trace = tracer.stop();

  ASSERT_EQ(said.size(), programs * (1 + 3 * 2));
  std::map<pid_t, std::vector<std::int64_t>> written;
  for (const std::string& line : said) {
    std::istringstream words(line);
    pid_t pid = 0;
    std::int64_t first = 0, count = 0;
    words >> pid >> first >> count;
    while (count-- > 0) written[pid].push_back(first++);
  }
  int wrong = 0;
  for (const auto& [pid, numbers] : written) {
    const auto got = steps_by_time(trace, pid);
    if (got != numbers && ++wrong <= 3)
      ADD_FAILURE() << pid << " wrote " << numbers.size() << " steps; of them came " << ::testing::PrintToString(got);
    expect_all_delivered(trace, pid);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(trace.summary["rings_missed"], 0);
  EXPECT_EQ(trace.summary["drops"]["save"], 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, SavedAtExecLive,
                         ::testing::Values(ExecWay{"Idle", "known", false, false},
                                           ExecWay{"Busy", "known", true, false},
                                           ExecWay{"BusyAll", "all", true, false},
                                           ExecWay{"Stopped", "known", false, true},
                                           ExecWay{"StoppedAll", "all", false, true}),
                         by_label);

struct Begun {
  std::int64_t begun = 0, written = 0;  ///< numbers of steps
};

class ExecThreadsLive : public LiveTest, public ::testing::WithParamInterface<ExecWay> {
 protected:
  Begun progress() const {
    Begun progress;
    std::ifstream(dir / "progress", std::ios::binary).read(reinterpret_cast<char*>(&progress), sizeof progress);
    return progress;
  }
};

/// Exec ends the other threads. Their events are either delivered or counted as lost.
TEST_P(ExecThreadsLive, EventsOfOtherDomainsAreDeliveredOrCountedAsLost) {
  const ExecWay& way = GetParam();
  const bool all = std::string(way.save_rings) == "all";
  covers("lifecycle",
         std::string("exec while another domain writes, under a stopped tracer (--save-rings ") + way.save_rings + ")");
  Tracer tracer({"--sched", "off", "-n", "chatty", "-n", "chain", "--save-rings", way.save_rings});
  Process process(preserved("chatty", {dir / "progress", ocaml_program("chain"), "30"}));
  tracer.process().line_with(R"("action":"ring")");
  process.lines_until("ready");
  tracer.process().stop();
  process.go();
  EXPECT_EQ(run_through(process).status.code(), 0);
  tracer.process().resume();
  const Trace trace = tracer.stop();

  const auto numbers = steps(trace, process.pid(), "chatty");
  EXPECT_TRUE(std::ranges::is_sorted(numbers, std::less_equal{})) << "out of order, or twice";
  ASSERT_FALSE(numbers.empty());
  const auto [begun, written] = progress();
  EXPECT_LE(numbers.back(), begun);
  const bool missed = trace.summary["rings_missed"] != 0;
  EXPECT_TRUE(missed || numbers.back() >= written) << numbers.back() << " of " << written;
  const bool can_know = all || running_kernel() >= kernel::KernelVersion{6, 16};
  EXPECT_FALSE(can_know && missed);
  EXPECT_EQ(steps(trace, process.pid(), "chain"), count_to(30));
}

INSTANTIATE_TEST_SUITE_P(Ways, ExecThreadsLive,
                         ::testing::Values(ExecWay{"Known", "known", false, true}, ExecWay{"All", "all", false, true}),
                         by_label);

}  // namespace
}  // namespace rtev::test
