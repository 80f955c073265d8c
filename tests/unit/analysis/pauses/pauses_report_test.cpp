// SPDX-License-Identifier: MIT
// Which pauses are told, and how the reports look.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/escape.hpp"
#include "support/files.hpp"
#include "unit/analysis/pauses/pauses_fixture.hpp"

namespace rtev::test {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::Not, testing::SizeIs;

class PausesReporting : public PausesTest {
 protected:
  /// Pauses of these lengths, one after the other.
  void pauses_of(std::initializer_list<std::uint64_t> lengths) {
    std::uint64_t time = 1'000;
    for (const std::uint64_t length : lengths) {
      span(time, time + length, phase_major);
      time += length + 1'000;
    }
  }
  std::vector<std::uint64_t> lengths(const PausesReport& report) {
    std::vector<std::uint64_t> lengths;
    for (const PauseDetails* pause : report.worst) lengths.push_back(pause->duration_ns());
    return lengths;
  }
};

TEST_F(PausesReporting, TheLongestComeFirst) {
  pauses_of({300, 900, 100, 700, 700, 500});
  const PausesReport report = play({.top = 4});
  EXPECT_THAT(lengths(report), ElementsAre(900, 700, 700, 500));
  EXPECT_LT(report.worst[1]->begin_ns, report.worst[2]->begin_ns);
  EXPECT_EQ(report.counts.pauses, 6U);
  EXPECT_EQ(report.counts.long_enough, 6U);
}

TEST_F(PausesReporting, ShorterOnesThanTheLeastAreOnlyCounted) {
  pauses_of({300, 900, 100, 500});
  const PausesReport report = play({.min_ns = 500});
  EXPECT_THAT(lengths(report), ElementsAre(900, 500));
  EXPECT_EQ(report.counts.pauses, 4U);
  EXPECT_EQ(report.counts.long_enough, 2U);
  EXPECT_THAT(pauses->report_text(), testing::StartsWith("2 of 4 pauses of server/4242 lasted 500ns or longer, in "));
}

TEST_F(PausesReporting, NoneIsLongEnough) {
  pauses_of({300, 900});
  EXPECT_THAT(play({.min_ns = 1'000}).worst, IsEmpty());
  EXPECT_THAT(pauses->report_text(), testing::StartsWith("none of 2 pauses lasted 1.00µs or longer, in "));
}

TEST_F(PausesReporting, NoneAtAll) {
  const PausesReport report = play();
  EXPECT_THAT(report.worst, IsEmpty());
  EXPECT_EQ(pauses->report_text(), "no pauses\nno scheduler events: it is unknown whether threads ran or waited\n");
  EXPECT_EQ(nlohmann::json::parse(pauses->report_json())["pauses"].size(), 0U);
}

TEST_F(PausesReporting, NoneAskedFor) {
  pauses_of({300, 900});
  EXPECT_THAT(play({.top = 0}).worst, IsEmpty());
}

TEST_F(PausesReporting, CanBeAskedForWhileTheStreamGoesOn) {
  Events events(world.slot);
  events.add("1000 >major 3000 <major");
  Pauses live({});
  live.header({.start_ns = 500});
  live.consume(events.batch(), world.registry);
  EXPECT_THAT(live.report().worst, SizeIs(1));
  EXPECT_THAT(live.report_text(), HasSubstr("1 pause of server/4242, in 2.50µs; the longest 2.00µs\n"));
}

TEST_F(PausesReporting, Text) {
  sees_all_switches();
  switches(100, enters(main_thread(), 0));
  span(1'000, 11'000, phase_major);
  span(2'000, 9'000, phase_slice);
  preempted(3'000, 5'000);
  play({}, {.end_ns = 1'000'001});
  EXPECT_EQ(pauses->report_text(), test::golden("analysis/golden/pauses.txt"));
}

TEST_F(PausesReporting, Json) {
  switches(100, enters(main_thread(), 0));
  switches(200, enters(other_thread(), 1));
  span(1'000, 6'000, phase_leader);
  span(1'010, 5'020, phase_start_barrier);
  span(5'000, 5'100, phase_handler, 1);
  span(5'010, 5'011, phase_start_barrier, 1);
  play({.top = 7, .min_ns = 50}, {.end_ns = 9'000, .rings_missed = 2});
  EXPECT_TRUE(pauses->report_json().ends_with("}\n"));
  EXPECT_EQ(nlohmann::json::parse(pauses->report_json()), nlohmann::json::parse(golden("analysis/golden/pauses.json")));
}

TEST_F(PausesReporting, WhatProgramsCallThemselvesIsEscaped) {
  for (const std::string& hostile : hostile_strings()) {
    world.registry.process(world.process).comm = hostile;
    Thread hog = competitor();
    hog.comm_bytes = {};
    std::copy_n(hostile.begin(), std::min(hostile.size(), hog.comm_bytes.size()), hog.comm_bytes.begin());
    Events events(world.slot);
    events.add_record(100, EventKind::sched_switch, enters(main_thread(), 0))
        .add(1'000, EventKind::begin, phase_major)
        .add_record(2'000, EventKind::sched_switch, leaves(main_thread(), LeftState::preempted, 0, hog))
        .add_record(8'000, EventKind::sched_switch, enters(main_thread(), 0, hog))
        .add("9000 <major 10000 >major");
    Pauses live({});
    live.consume(events.batch(), world.registry);
    live.summary({.end_ns = 20'000}, world.registry);
    std::string text = live.report_text();
    EXPECT_THAT(live.report().unfinished, SizeIs(1));
    std::erase(text, '\n');
    EXPECT_EQ(std::ranges::count_if(text, [](char c) { return c >= 0 && (c < ' ' || c == '\x7f'); }), 0);
    const auto json = nlohmann::json::parse(live.report_json());
    EXPECT_EQ(json["pauses"][0]["waits_for_cpu"][0]["by"]["tid"], 999);
  }
}

}  // namespace
}  // namespace rtev::test
