// SPDX-License-Identifier: MIT
// What is kept of the surroundings of long pauses.
#include "analysis/html_report/pause_timelines.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "analysis/html_report/html_report_sink.hpp"
#include "unit/analysis/html_report/html_report_stream.hpp"

namespace rtev::test {
namespace {

class PauseTimelinesTest : public testing::Test {
 protected:
  HtmlReport report(const HtmlReportOptions& options = {}) {
    sink_ = std::make_unique<HtmlReportSink>(options);
    stream.run(*sink_);
    return sink_->report(world.registry);
  }

  World world;
  HtmlReportStream stream{world};

 private:
  std::unique_ptr<HtmlReportSink> sink_;
};

TEST_F(PauseTimelinesTest, EachOfTheWorstPausesHasOne) {
  const HtmlReport found = report();
  ASSERT_FALSE(found.pauses.worst.empty());
  for (const PauseDetails* const pause : found.pauses.worst)
    EXPECT_NE(found.timelines->find(pause->domain.process, pause->begin_ns), nullptr) << pause->begin_ns;
}

TEST_F(PauseTimelinesTest, ItHasPhasesAndStatesOfAllDomains) {
  const HtmlReport found = report();
  const PauseDetails& worst = *found.pauses.worst.front();
  const PauseTimeline* const timeline = found.timelines->find(worst.domain.process, worst.begin_ns);
  ASSERT_NE(timeline, nullptr);
  for (const int domain : {0, 1}) {
    EXPECT_TRUE(std::ranges::any_of(timeline->phases, [&](const auto& phase) {
      return phase.domain == domain && phase.phase == phase_minor && phase.depth == 1;
    })) << domain;
  }
  const auto waits = std::ranges::find(timeline->states, ThreadState::runnable, &PauseTimeline::State::state);
  ASSERT_NE(waits, timeline->states.end());
  EXPECT_EQ(waits->tid, 4243);
  ASSERT_TRUE(waits->by.has_value());
  EXPECT_EQ(waits->by->comm(), "hog");
  // The thread that ran on has not changed its state since.
  EXPECT_TRUE(std::ranges::any_of(timeline->states, [](const auto& state) { return state.tid == 4242; }));
}

TEST_F(PauseTimelinesTest, PhaseTotalsAreThoseOfTheStream) {
  const HtmlReport found = report();
  const auto& totals = found.timelines->phase_totals();
  const PhaseTotal& minor = totals.at({Family::since_5_3, phase_minor});
  EXPECT_EQ(minor.count, 2 * stream.rounds);
  EXPECT_EQ(minor.total_ns, minor.own_ns);
  std::uint64_t own_ns = 0;
  for (const auto& [key, total] : totals) own_ns += total.own_ns;
  EXPECT_EQ(own_ns, found.latency.all.wall.total()) << "a pause is its phases";
}

TEST_F(PauseTimelinesTest, MemoryIsBounded) {
  stream.rounds = 2000;
  const HtmlReport found = report({.max_bytes = std::size_t{64} << 10});
  std::size_t kept = 0;
  for (const PauseDetails* const pause : found.pauses.worst) {
    const PauseTimeline* const timeline = found.timelines->find(pause->domain.process, pause->begin_ns);
    if (timeline == nullptr) continue;
    ++kept;
    EXPECT_LE(timeline->phases.size(), PauseTimelines::max_phases);
    EXPECT_LE(timeline->states.size(), PauseTimelines::max_states);
  }
  EXPECT_GT(kept, 0u);
}

}  // namespace
}  // namespace rtev::test
