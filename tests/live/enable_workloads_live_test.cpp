// SPDX-License-Identifier: MIT
// What programs do at the moment at which their events are switched on: they go on and end as they do without.

#include <array>
#include <deque>
#include <filesystem>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "live/harness.hpp"
#include "live/variety.hpp"

namespace rtev::test {
namespace {

constexpr std::array versions{"5.1", "5.3", "5.4"};

/// A kind of tests/variety/workloads.ml.
struct Workload {
  const char* kind;
  bool is_long = false;  ///< by its own clock, so that its events come on before its end on any machine
};

void PrintTo(const Workload& workload, std::ostream* out) {
  *out << workload.kind;
}

class EnableWorkloadLive : public LiveTest, public ::testing::WithParamInterface<Workload> {
 protected:
  Command working(const char* ocaml) const {
    const Variety variety{.ocaml = ocaml, .build = {.kind = "workloads", .what = "native"}};
    return {.argv = {variety.program(), GetParam().kind}, .env = {{"OCAML_RUNTIME_EVENTS_DIR", dir.path()}}};
  }
};

TEST_P(EnableWorkloadLive, EndsAsWithout) {
  for (const char* const ocaml : versions) {
    if (!fs::exists(working(ocaml).argv.front())) GTEST_SKIP() << "no OCaml " << ocaml;
  }
  covers("enable", std::string("while a program does: ") + GetParam().kind);
  std::map<std::string, Outcome> untouched;
  std::deque<Process> processes;
  for (const char* const ocaml : versions) {
    Process process(working(ocaml), "ready");
    untouched[ocaml] = run_through(process);
    processes.emplace_back(working(ocaml), "ready");
  }
  Tracer tracer({"--enable"});
  for (Process& process : processes) process.go();
  std::vector<Outcome> outcomes;
  for (Process& process : processes) outcomes.push_back(run_through(process));
  const Trace trace = tracer.stop();
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const Outcome& expected = untouched[versions.at(i)];
    EXPECT_EQ(outcomes.at(i).out, expected.out) << outcomes.at(i).err;
    EXPECT_EQ(outcomes.at(i).status.raw, expected.status.raw) << outcomes.at(i).err;
    if (GetParam().is_long) {
      EXPECT_EQ(trace.action(processes.at(i).pid(), "enable").value("result", ""), "done");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, EnableWorkloadLive,
    ::testing::ValuesIn(std::to_array<Workload>(
        {{"alloc"},         {"domains"},         {"spawn"},      {"threads", true}, {"late_threads", true},
         {"signals", true}, {"raising_signals"}, {"finalisers"}, {"weak"},          {"effects"},
         {"deep"},          {"exceptions"},      {"fork"},       {"exec"},          {"sleep", true},
         {"compact"},       {"pipes"},           {"ping_pong"},  {"marshal"},       {"short"},
         {"ends"}})),
    [](const auto& test) { return std::string(test.param.kind); });

}  // namespace
}  // namespace rtev::test
