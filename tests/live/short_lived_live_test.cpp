// SPDX-License-Identifier: MIT
// A thousand programs of a few milliseconds, one after the other: every event of each is reported exactly once.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "live/harness.hpp"
#include "live/matrix.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

constexpr int programs = 1000;
constexpr int numbers = 20;  ///< number of user events of each program

struct Way {
  const char* label;
  bool busy;       ///< whether other programs keep all cpus busy
  bool preserved;  ///< whether to compare with preserved ring files; else with what the program is known to write
};

void PrintTo(const Way& way, std::ostream* out) {
  *out << way.label;
}

class ShortLivedLive : public LiveTest, public ::testing::WithParamInterface<Way> {
 protected:
  /// The events and the summary of each process.
  static std::map<pid_t, std::vector<Json>> by_process(const Trace& trace) {
    std::map<pid_t, std::vector<Json>> processes;
    for (const Json& event : trace.events) processes[event.value("pid", 0)].push_back(event);
    return processes;
  }

  static std::vector<Json> without_processes(std::vector<Json> events) {
    std::erase_if(events, [](const Json& event) { return event["type"] == "process"; });
    return events;
  }

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

TEST_P(ShortLivedLive, EveryOneOfAThousand) {
  const Way& way = GetParam();
  covers("lifecycle", std::string("1,000 programs of a few milliseconds in a row, ") +
                          (way.busy ? "all cpus busy" : "idle cpus") + (way.preserved ? ", rings preserved" : ""));
  if (way.busy) occupy_cpus();
  Tracer tracer({"--sched", "off", "-n", "numbered"});
  const Command command = way.preserved ? preserved("numbered", {std::to_string(numbers)})
                                        : with_events("numbered", {std::to_string(numbers)});
  std::vector<pid_t> pids;
  for (int i = 0; i < programs; ++i) {
    Process process(command);
    ASSERT_EQ(process.wait().status.code(), 0);
    pids.push_back(process.pid());
  }
  const Trace trace = tracer.stop();

  EXPECT_EQ(trace.summary["rings_missed"], 0);
  for (const char* kind : {"ring", "drain"}) EXPECT_EQ(trace.summary["drops"][kind], 0) << kind;
  auto processes = by_process(trace);
  const auto truth = way.preserved ? oracle(dir.path(), pids) : std::map<pid_t, Records>{};
  int wrong = 0;
  for (int number = 0; number < programs; ++number) {
    const pid_t pid = pids[static_cast<std::size_t>(number)];
    std::vector<std::string> actions;
    Json life = Json::array();
    for (const Json& event : processes[pid]) {
      if (event["type"] != "process") continue;
      actions.push_back(event["action"]);
      life.push_back(event);
    }
    const std::vector<Json> events = without_processes(std::move(processes[pid]));
    std::string mistake;
    if (events.empty())
      mistake = "no events";
    else if (mistake = wrong_numbers(events); mistake.empty() && way.preserved)
      mistake = difference(truth.at(pid), records(events));
    for (const char* action : {"ring", "stop", "exit"})
      if (std::ranges::count(actions, action) != 1) mistake += std::string(" not one ") + action + " in " + life.dump();
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

const auto label = [](const auto& way) { return std::string(way.param.label); };
INSTANTIATE_TEST_SUITE_P(Ways, ShortLivedLive,
                         ::testing::Values(Way{"Idle", false, false}, Way{"Busy", true, false},
                                           Way{"BusyPreserved", true, true}),
                         label);

}  // namespace
}  // namespace rtev::test
