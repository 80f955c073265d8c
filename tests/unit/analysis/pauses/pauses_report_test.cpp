// SPDX-License-Identifier: MIT
// Which pauses are told, and how the reports look.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/escape.hpp"
#include "support/golden.hpp"
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
      begin(time, phase_major);
      end(time + length, phase_major);
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
  EXPECT_THAT(pauses->report_text(), HasSubstr("the 2 worst of 4 pauses, of which 2 lasted 500ns or longer, in "));
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
  events.add(1'000, EventKind::begin, phase_major).add(3'000, EventKind::end, phase_major);
  Pauses live({});
  live.header({.start_ns = 500});
  live.consume(events.batch(), world.registry);
  EXPECT_THAT(live.report().worst, SizeIs(1));
  EXPECT_THAT(live.report_text(), HasSubstr("the worst of 1 pause, in 2.50µs\n"));
}

TEST_F(PausesReporting, Text) {
  sees_all_switches();
  switches(100, enters(main_thread(), 0));
  begin(1'000, phase_major);
  begin(2'000, phase_slice);
  switches(3'000, leaves(main_thread(), LeftState::preempted, 0, competitor()));
  switches(5'000, enters(main_thread(), 0, competitor()));
  end(9'000, phase_slice);
  end(11'000, phase_major);
  play({}, {.end_ns = 1'000'001});
  EXPECT_EQ(pauses->report_text(), test::golden("analysis/golden/pauses.txt"));
}

TEST_F(PausesReporting, Json) {
  switches(100, enters(main_thread(), 0));
  switches(200, enters(other_thread(), 1));
  begin(1'000, phase_leader);
  begin(1'010, phase_start_barrier);
  begin(5'000, phase_handler, 1);
  begin(5'010, phase_start_barrier, 1);
  end(5'011, phase_start_barrier, 1);
  end(5'020, phase_start_barrier);
  end(5'100, phase_handler, 1);
  end(6'000, phase_leader);
  play({.top = 7, .min_ns = 50}, {.end_ns = 9'000, .rings_missed = 2});
  EXPECT_TRUE(pauses->report_json().ends_with("}\n"));
  const auto json = nlohmann::json::parse(pauses->report_json());
  EXPECT_EQ(json["type"], "pauses");
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["version"], "1.2");
  EXPECT_EQ(json["start_ns"], 1);
  EXPECT_EQ(json["end_ns"], 9'000);
  EXPECT_EQ(json["min_ns"], 50);
  EXPECT_EQ(json["top"], 7);
  EXPECT_EQ(json["counts"]["pauses"], 2);
  EXPECT_EQ(json["counts"]["represented"], 1);
  EXPECT_EQ(json["counts"]["rings_missed"], 2);
  EXPECT_EQ(json["counts"]["scheduler_seen"], true);
  ASSERT_EQ(json["pauses"].size(), 1U);
  const auto& pause = json["pauses"][0];
  EXPECT_EQ(pause["pid"], 4242);
  EXPECT_EQ(pause["comm"], "server");
  EXPECT_EQ(pause["phase"], "stw_leader");
  EXPECT_EQ(pause["duration_ns"], 5'000);
  EXPECT_EQ(pause["time_ns"]["on_cpu"], 5'000);
  EXPECT_EQ(pause["start_wait_ns"], 4'000);
  EXPECT_EQ(pause["besides_ns"]["on_cpu"], 1'000);
  EXPECT_EQ(pause["blame"]["cause"], "late_domain");
  EXPECT_EQ(pause["blame"]["why"], "ran");
  EXPECT_EQ(pause["blame"]["domain"], 1);
  EXPECT_EQ(pause["blame"]["ns"], 4'000);
  EXPECT_EQ(pause["blame"]["text"], blame());
  ASSERT_EQ(pause["phases"].size(), 2U);
  EXPECT_EQ(pause["phases"][1]["name"], "stw_api_barrier");
  EXPECT_EQ(pause["phases"][1]["depth"], 1);
  EXPECT_EQ(pause["phases"][1]["total_ns"], 4'010);
  ASSERT_EQ(pause["sections"].size(), 1U);
  const auto& section = pause["sections"][0];
  EXPECT_EQ(section["id"], pause["blame"]["section"]);
  EXPECT_EQ(section["last_to_arrive"], 1);
  EXPECT_EQ(section["last_to_end_minor"], nullptr);
  ASSERT_EQ(section["domains"].size(), 2U);
  EXPECT_EQ(section["domains"][0]["leads"], true);
  EXPECT_EQ(section["domains"][1]["arrived_ns"], 5'010);
  EXPECT_EQ(section["domains"][1]["before"]["time_ns"]["on_cpu"], 4'010);
  EXPECT_EQ(section["domains"][1]["before"]["longest_wait"]["by"], nullptr);
  EXPECT_EQ(section["domains"][1]["pause"]["duration_ns"], 100);
  EXPECT_EQ(section["domains"][1]["minor_begin_ns"], nullptr);
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
        .add(9'000, EventKind::end, phase_major)
        .add(10'000, EventKind::begin, phase_major);
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
