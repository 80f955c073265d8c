// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <map>
#include <random>

#include "unit/formats/chrome/chrome_fixture.hpp"

namespace rtev::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ChromeTrace::Row cpu_row(std::uint32_t cpu) {
  return {cpus_pid, cpus_pid + 1 + cpu};
}

std::vector<std::string> texts(const std::vector<ChromeTrace::State>& states) {
  std::vector<std::string> made;
  for (const auto& state : states)
    made.push_back(state.name + " " + std::to_string(state.from) + "-" + std::to_string(state.to));
  return made;
}

class ChromeSched : public Chrome {};

TEST_F(ChromeSched, AThreadGoesThroughItsStates) {
  const Thread main = thread(chrome_pid, 0, ThreadRole::mutator);
  change(10, 1, idle(), main);
  change(20, 1, main, stranger(), LeftState::preempted);
  change(30, 1, stranger(), main);
  change(40, 1, main, idle(), LeftState::uninterruptible);
  wake(60, 1, main, stranger(7));
  change(65, 0, idle(), main);
  change(70, 0, main, idle(), LeftState::sleeping);
  const ChromeTrace trace = finish_well(100);
  const auto& states = trace.states.at({chrome_pid, chrome_pid});
  EXPECT_THAT(texts(states), ElementsAre("Running 10-20", "R+ 20-30", "Running 30-40", "D 40-60", "R 60-65",
                                         "Running 65-70", "S 70-100"));
  EXPECT_EQ(states[0].args, json::parse(R"({"cpu":1})"));
  EXPECT_EQ(states[1].args, json::parse(R"({"preempted_by":{"comm":"python3","pid":99,"tid":99}})"));
  EXPECT_EQ(states[4].args, json::parse(R"({"waker":{"comm":"python3","pid":7,"tid":7}})"));
}

TEST_F(ChromeSched, CpusShowWhoRunsThereAndWhy) {
  const Thread main = thread(chrome_pid, 0, ThreadRole::mutator);
  wake(5, 1, main, stranger(7));
  change(10, 1, idle(), main);
  change(20, 1, main, stranger(), LeftState::preempted);
  change(30, 1, stranger(), idle());
  const ChromeTrace trace = finish_well(100);
  EXPECT_EQ(trace.process_names.at(cpus_pid), "CPUs");
  EXPECT_EQ(trace.row_names.at(cpu_row(1)), "CPU 1");
  EXPECT_THAT(texts(trace.spans.at(cpu_row(1))),
              ElementsAre(R"(server domain 0 sched 10-20 {"left":"preempted","pid":4242,"priority":120,"tid":4242,)"
                          R"("waited":0.005,"waker":{"comm":"python3","pid":7,"tid":7}})",
                          R"(python3 sched 20-30 {"left":"sleeping","pid":99,"priority":120,"tid":99})"));
}

TEST_F(ChromeSched, OfOtherProgramsOnlyTheirTurnsAreKnown) {
  change(10, 0, idle(), stranger());
  change(20, 0, stranger(), thread(chrome_pid));
  change(30, 0, thread(chrome_pid), stranger());
  change(40, 0, stranger(), thread(chrome_pid));
  const ChromeTrace trace = finish_well(50);
  EXPECT_THAT(texts(trace.states.at({99, 99})), ElementsAre("Running 10-20", "Running 30-40"));
}

TEST_F(ChromeSched, ASwitchThatWasNotSeenLeavesAGap) {
  const Thread main = thread(chrome_pid);
  change(10, 0, idle(), main);
  change(20, 0, main, idle());
  change(50, 0, main, idle());  // it must have come back in between
  change(60, 1, idle(), main);
  change(70, 0, idle(), main);  // left cpu 1 before
  const ChromeTrace trace = finish_well(80);
  EXPECT_THAT(texts(trace.states.at({chrome_pid, chrome_pid})),
              ElementsAre("Running 10-20", "S 50-60", "Running 60-70", "Running 70-80"));
}

TEST_F(ChromeSched, TheDeadHaveNoState) {
  const Thread main = thread(chrome_pid), other = thread(4250);
  change(10, 0, idle(), other);
  change(20, 0, other, main, LeftState::dead);
  const ChromeTrace trace = finish_well(30);
  EXPECT_THAT(texts(trace.states.at({chrome_pid, 4250})), ElementsAre("Running 10-20"));
  EXPECT_THAT(texts(trace.states.at({chrome_pid, chrome_pid})), ElementsAre("Running 20-30"));
}

TEST_F(ChromeSched, CpuNumbersThatCannotBeHaveNoRow) {
  change(10, UINT32_MAX, idle(), thread(chrome_pid));
  change(20, UINT32_MAX, thread(chrome_pid), idle());
  const ChromeTrace trace = finish_well(30);
  EXPECT_FALSE(trace.process_names.contains(cpus_pid));
  EXPECT_THAT(texts(trace.states.at({chrome_pid, chrome_pid})), ElementsAre("Running 10-20", "S 20-30"));
}

/// Threads that come and go on cpus with wakeups between, in a stream of which some is missing or late.
TEST_F(ChromeSched, NothingOverlapsWhateverIsMissing) {
  std::minstd_rand engine(4);
  const auto random = [&] { return static_cast<std::int32_t>(engine() >> 4); };
  const auto chance = [&](int percent) { return random() % 100 < percent; };
  constexpr std::uint32_t cpus = 4;
  std::array<Thread, cpus> on;
  on.fill(idle());
  std::uint64_t time = 1000;
  for (int i = 0; i < 20'000; ++i) {
    time += static_cast<std::uint64_t>(random() % 3);
    const auto cpu = static_cast<std::uint32_t>(random()) % cpus;
    const Thread next = chance(30) ? idle() : chance(20) ? stranger(90 + random() % 5) : thread(4242 + random() % 9);
    const bool is_elsewhere =
        next.tid != 0 && std::ranges::any_of(on, [&](const Thread& t) { return t.tid == next.tid; });
    if (is_elsewhere) continue;
    if (chance(20) && next.tracked) wake(time, cpu, next, on[cpu]);
    if (!chance(10)) change(chance(2) ? time - 5 : time, cpu, on[cpu], next, static_cast<LeftState>(random() % 8));
    on[cpu] = next;
  }
  const ChromeTrace trace = finish(time + 10);
  EXPECT_THAT(trace.problems, IsEmpty());
  for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
    const auto& turns = trace.spans.at(cpu_row(cpu));
    EXPECT_GT(turns.size(), 1000U);
    for (std::size_t i = 1; i < turns.size(); ++i) ASSERT_LE(turns[i - 1].to, turns[i].from);
  }
}

TEST_F(ChromeSched, WithoutGapsTheStatesPartitionTheTime) {
  std::minstd_rand engine(5);
  const auto random = [&] { return static_cast<std::int32_t>(engine() >> 4); };
  std::map<std::int32_t, bool> is_asleep;
  Thread on = thread(4242);
  std::uint64_t time = 1000;
  change(time, 0, idle(), on);
  for (std::int32_t tid = 4242; tid < 4247; ++tid) is_asleep[tid] = false;
  for (int i = 0; i < 5'000; ++i) {
    time += 1 + static_cast<std::uint64_t>(random() % 5);
    const Thread next = thread(4242 + random() % 5);
    if (next.tid == on.tid) continue;
    if (is_asleep[next.tid]) wake(time++, 0, next, on);
    const bool sleeps = random() % 2 == 0;
    change(time, 0, on, next, sleeps ? LeftState::sleeping : LeftState::preempted);
    is_asleep[on.tid] = sleeps;
    is_asleep[next.tid] = false;
    on = next;
  }
  const ChromeTrace trace = finish_well(time + 10);
  for (const auto& [row, states] : trace.states) {
    EXPECT_EQ(states.back().to, time + 10);
    for (std::size_t i = 1; i < states.size(); ++i) ASSERT_EQ(states[i - 1].to, states[i].from) << row.second;
  }
}

}  // namespace
}  // namespace rtev::test
