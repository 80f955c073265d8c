// SPDX-License-Identifier: MIT
// A thousand programs of a few milliseconds, one after the other: every event of each is reported exactly once.

#include <algorithm>
#include <numeric>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

constexpr int programs = 1000;
constexpr int numbers = 20;  ///< number of user events of each program

struct ShortWay {
  const char* label;
  bool busy;       ///< whether other programs keep all cpus busy
  bool preserved;  ///< whether to compare with preserved ring files; else with what the program is known to write
};

class ShortLivedLive : public LiveTest, public ::testing::WithParamInterface<ShortWay> {
 protected:
  /// Empty if the ring starts, has the numbers from 0 on once each in order, and ends. Otherwise an error message.
  static std::string wrong_numbers(const std::vector<Json>& events) {
    std::vector<int> got;
    for (const Json& event : events)
      if (event["type"] == "user" && event["name"] == "number") got.push_back(event["value"]);
    std::vector<int> expected(numbers);
    std::iota(expected.begin(), expected.end(), 0);
    if (got != expected) return std::to_string(got.size()) + " numbers in " + Json(events).dump().substr(0, 2000);
    if (events.front()["name"] != "ring_start") return "begins with " + events.front().dump();
    if (std::ranges::count(events, "ring_stop", [](const Json& event) { return event.value("name", ""); }) != 1)
      return "not one end of the ring";
    return {};
  }
};

TEST_P(ShortLivedLive, DeliversEachOfAThousandPrograms) {
  const ShortWay& way = GetParam();
  covers("lifecycle", std::string("1,000 programs of a few milliseconds in a row, ") +
                          (way.busy ? "all cpus busy" : "idle cpus") + (way.preserved ? ", rings preserved" : ""));
  if (way.busy) occupy_cpus();
  Tracer tracer({"--sched", "off", "-n", "numbered"});
  const Command command = way.preserved ? preserved("numbered", {std::to_string(numbers)})
                                        : with_events("numbered", {std::to_string(numbers)});
  std::vector<pid_t> pids;
  for (int i = 0; i < programs; ++i) pids.push_back(run_to_end(command));
  const Trace trace = tracer.stop();

  EXPECT_EQ(trace.summary["rings_missed"], 0);
  for (const char* kind : {"ring", "save"}) EXPECT_EQ(trace.summary["drops"][kind], 0) << kind;
  auto processes = trace.by_process();
  const auto truth = way.preserved ? oracle(dir.path(), pids) : std::map<pid_t, Records>{};
  int wrong = 0;
  for (int number = 0; number < programs; ++number) {
    const pid_t pid = pids[static_cast<std::size_t>(number)];
    const Strings actions = processes[pid].actions(pid);
    const std::vector<Json> events = processes[pid].from_rings(pid);
    std::string mistake;
    if (events.empty())
      mistake = "no events";
    else if (mistake = wrong_numbers(events); mistake.empty() && way.preserved)
      mistake = difference(truth.at(pid), records(events));
    for (const char* action : {"ring", "stop", "exit"})
      if (std::ranges::count(actions, action) != 1)
        mistake += std::string(" not one ") + action + " in " + Json(processes[pid].of("process")).dump();
    if (!mistake.empty() && ++wrong <= 5)
      ADD_FAILURE() << "process " << pid << ", number " << number << ": " << mistake;
  }
  EXPECT_EQ(wrong, 0);

  // Parsing the summary checks the equation of the counts for each process.
  for (const Json& process : trace.summary["processes"]) {
    if (process["comm"] != "numbered") continue;
    EXPECT_EQ(process["words"]["delivered"], process["words"]["written"]) << process;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ShortLivedLive,
                         ::testing::Values(ShortWay{"Idle", false, false}, ShortWay{"Busy", true, false},
                                           ShortWay{"BusyPreserved", true, true}),
                         by_label);

}  // namespace
}  // namespace rtev::test
