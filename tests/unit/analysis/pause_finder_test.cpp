// SPDX-License-Identifier: MIT
#include "analysis/pause_finder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "unit/stream/world.hpp"

namespace rtev {
namespace {

using test::Events, test::phase_major, test::phase_minor, test::phase_wait, test::World;
using testing::ElementsAre, testing::IsEmpty;

// Ids of the 5.3+ family.
constexpr std::uint16_t explicit_full_major = 4, interrupt_remote = 19, major_slice = 27, stw_handler = 34,
                        stw_leader = 35, major_mark = 10;

/// Writes a line for each call.
class Log : public PauseListener {
 public:
  void on_domain_begin(const DomainLife& life, std::uint64_t time, bool certain) override {
    lines.push_back(who(life) + "incarnation " + std::to_string(life.incarnation) + (certain ? " begins " : " seen ") +
                    std::to_string(time));
  }
  void on_domain_end(const DomainLife& life, std::uint64_t time) override {
    lines.push_back(who(life) + "incarnation " + std::to_string(life.incarnation) + " ends " + std::to_string(time));
  }
  void on_phase_begin(const DomainLife& life, const PhaseBegin& phase) override {
    phases.push_back(who(life) + '>' + name(phase.phase));
  }
  void on_phase_end(const DomainLife& life, const PhaseEnd& phase) override {
    phases.push_back(who(life) + '<' + name(phase.phase) + ' ' + std::to_string(phase.end_ns - phase.begin_ns));
    EXPECT_LE(phase.begin_ns, phase.end_ns);
  }
  void on_phase_dropped(const DomainLife& life, const PhaseEnd& phase, Unfinished reason) override {
    phases.push_back(who(life) + '!' + name(phase.phase) + ' ' + std::string{to_string(reason)});
  }
  void on_pause_begin(const DomainLife& life, const PhaseBegin& root) override {
    ++open;
    begun.push_back(who(life) + name(root.phase) + ' ' + std::to_string(root.time_ns));
  }
  void on_pause_end(const DomainLife& life, const PhaseEnd& root) override {
    --open;
    lines.push_back(who(life) + name(root.phase) + ' ' + std::to_string(root.begin_ns) + '-' +
                    std::to_string(root.end_ns) + (root.late ? " late" : ""));
  }
  void on_pause_dropped(const DomainLife& life, const PhaseEnd& root, Unfinished reason) override {
    --open;
    lines.push_back(who(life) + name(root.phase) + ' ' + std::to_string(root.begin_ns) + ' ' +
                    std::string{to_string(reason)});
  }
  void on_loss(const DomainLife& life, const Loss& loss) override {
    lines.push_back(who(life) + "lost " + std::to_string(loss.words));
  }

  std::vector<std::string> lines, begun, phases;
  int open = 0;

 private:
  static std::string who(const DomainLife& life) { return life.domain == 0 ? "" : std::to_string(life.domain) + ": "; }
  static std::string name(std::uint16_t phase) {
    const std::string_view known = phase_name(Family::since_5_3, phase);
    return known.empty() ? '#' + std::to_string(phase) : std::string{known};
  }
};

class PauseFinderTest : public testing::Test {
 protected:
  /// Feeds the events; the first line, which says that the domain was seen, is left out.
  std::vector<std::string> found(const Events& events, PauseRule rule = PauseRule::outermost) {
    PauseFinder finder{log, rule};
    const Batch batch = events.batch();
    for (const Event& event : batch.events()) finder.add(event, batch, world.registry);
    ends_without_begin = finder.ends_without_begin();
    auto lines = log.lines;
    if (!lines.empty() && lines.front().contains("incarnation 1 ")) lines.erase(lines.begin());
    return lines;
  }
  Events events() const { return Events{world.slot}; }

  World world;
  Log log;
  std::uint64_t ends_without_begin = 0;
};

TEST_F(PauseFinderTest, AreTheOutermostSpans) {
  EXPECT_THAT(
      found(events().add("100 >major 110 >major_slice 120 >major_mark 150 <major_mark 160 <major_slice 170 <major "
                         "200 >stw_leader 205 <stw_leader")),
      ElementsAre("major 100-170", "stw_leader 200-205"));
  EXPECT_THAT(log.phases, ElementsAre(">major", ">major_slice", ">major_mark", "<major_mark 30", "<major_slice 50",
                                      "<major 70", ">stw_leader", "<stw_leader 5"));
  EXPECT_THAT(log.begun, ElementsAre("major 100", "stw_leader 200"));
}

TEST_F(PauseFinderTest, PausesOfAStream) {
  const std::string full_major =
      "100 >explicit_gc_full_major 110 >stw_leader 115 >minor 118 <minor 120 <stw_leader 130 >major 140 <major "
      "150 <explicit_gc_full_major";
  struct Case {
    std::string what, script;
    std::vector<std::string> lines;
    PauseRule rule = PauseRule::outermost;
  };
  const std::vector<Case> cases{
      {"an explicit collection is one pause", full_major, {"explicit_gc_full_major 100-150"}},
      {"for olly its parts are", full_major, {"stw_leader 110-120", "major 130-140"}, PauseRule::olly},
      {"an end without a begin changes nothing",
       "90 <major 100 >stw_leader 110 <major 120 <stw_leader",
       {"stw_leader 100-120"}},
      {"a phase that cannot nest begins again: its end is missing",
       "100 >stw_leader 110 >minor 200 >stw_leader 210 <stw_leader",
       {"stw_leader 100 no_end", "stw_leader 200-210"}},
      {"a phase that may nest does, for example in a finaliser that collects",
       "100 >explicit_gc_full_major 110 >explicit_gc_full_major 120 <explicit_gc_full_major "
       "130 <explicit_gc_full_major",
       {"explicit_gc_full_major 100-130"}},
      {"a loss in a pause makes it unknown",
       "100 >stw_leader 110 >minor 150 ? 160 <minor 170 <stw_leader 200 >stw_leader 220 <stw_leader",
       {"stw_leader 100 lost", "lost 100", "stw_leader 200-220"}},
      {"after a loss inner spans are no pauses until the end of an outer one is seen",
       "100 >stw_leader 150 ? 160 >minor 165 >minor_local_roots 170 <minor_local_roots 180 <minor 190 <stw_leader "
       "200 >minor 210 <minor",
       {"stw_leader 100 lost", "lost 100", "minor 200-210"}},
      {"a loss between pauses hides none that is seen",
       "100 >major 110 <major 150 ? 160 >major 170 <major",
       {"major 100-110", "lost 100", "major 160-170"}},
      {"a stream that begins in a pause does not count its parts",
       "100 >minor_local_roots 110 <minor_local_roots 120 <minor 130 >major_mark 140 <major_mark "
       "150 <interrupt_remote 160 >interrupt_remote 170 <interrupt_remote",
       {"interrupt_remote 160-170"}},
      {"domains that have a number one after the other are different, also before the spawn event, and if the end of "
       "one is missing",
       "100 !domain_spawn@1 110 >stw_handler@1 120 <stw_handler@1 130 >major@1 140 !domain_terminate@1 141 <major@1 "
       "200 >stw_handler@1 210 <stw_handler@1 220 !domain_spawn@1 230 !domain_terminate@1 300 !domain_spawn@1 "
       "400 !domain_spawn@1",
       {"1: stw_handler 110-120", "1: major 130 ended", "1: incarnation 1 ends 140", "1: incarnation 2 begins 200",
        "1: stw_handler 200-210", "1: incarnation 2 ends 230", "1: incarnation 3 begins 300",
        "1: incarnation 3 ends 400", "1: incarnation 4 begins 400"}},
      {"the section that takes the ring down is none",
       "100 !ring_start 110 >major 120 <major 130 !ring_stop 140 >stw_leader",
       {"major 110-120"}},
      {"what was open when events were paused is unknown",
       "100 >stw_leader 200 !ring_resume 210 >stw_leader 220 <stw_leader",
       {"stw_leader 100 no_end", "stw_leader 210-220"}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    log = {};
    EXPECT_EQ(found(events().add(each.script), each.rule), each.lines);
    EXPECT_EQ(log.open, 0);
  }
}

TEST_F(PauseFinderTest, WaitingForAConditionIsNone) {
  // The backup thread collects while the domain's thread waits.
  EXPECT_THAT(found(events().add("100 >domain_condition_wait 110 >stw_handler 120 >minor 130 <minor "
                                 "135 <domain_condition_wait 140 <stw_handler")),
              ElementsAre("stw_handler 110-140"));
  EXPECT_THAT(log.phases, ElementsAre(">domain_condition_wait", ">stw_handler", ">minor", "<minor 10",
                                      "<domain_condition_wait 35", "<stw_handler 30"));
}

TEST_F(PauseFinderTest, SeveralThreadsOfADomainMayWait) {
  EXPECT_THAT(found(events().add("100 >domain_condition_wait 110 >domain_condition_wait 120 <domain_condition_wait "
                                 "150 <domain_condition_wait 160 <domain_condition_wait")),
              IsEmpty());
  EXPECT_THAT(log.phases, ElementsAre(">domain_condition_wait", ">domain_condition_wait", "<domain_condition_wait 10",
                                      "<domain_condition_wait 50"));
  EXPECT_EQ(ends_without_begin, 1U);
}

TEST_F(PauseFinderTest, AnInnerSpanWithoutAnEndEndsWithTheOneAroundIt) {
  EXPECT_THAT(found(events().add("100 >major 110 >major_slice 120 >major_mark 150 <major 160 >major 170 <major")),
              ElementsAre("major 100-150", "major 160-170"));
  EXPECT_THAT(log.phases, ElementsAre(">major", ">major_slice", ">major_mark", "!major_mark no_end",
                                      "!major_slice no_end", "<major 50", ">major", "<major 10"));
}

TEST_F(PauseFinderTest, OtherProducersMayBeginWithAnything) {
  world.slot = world.registry.add_ring({.process = world.process, .domains = 1, .producer = Producer{}});
  EXPECT_THAT(found(events().add("100 >major_mark 110 <major_mark")), ElementsAre("major_mark 100-110"));
}

TEST_F(PauseFinderTest, EndWithTheProcess) {
  auto stream = events();
  stream.add("100 >major 105 >major@1");
  stream.add_record(200, EventKind::process, ProcessRecord{world.process, 0, 0},
                    static_cast<std::uint16_t>(ProcessAction::exit));
  EXPECT_THAT(found(stream), ElementsAre("1: incarnation 1 seen 105", "major 100 ended", "incarnation 1 ends 200",
                                         "1: major 105 ended", "1: incarnation 1 ends 200"));
  EXPECT_EQ(log.open, 0);
}

TEST_F(PauseFinderTest, AClockThatGoesBackMakesThemUnknown) {
  EXPECT_THAT(found(events()
                        .add("100 >major 90 <major")
                        .late()
                        .add(95, EventKind::begin, phase_major)
                        .late()
                        .add("95 <major 0 >major")
                        .add(UINT64_MAX, EventKind::end, phase_major)),
              ElementsAre("major 100 clock", "major 95-95 late", "major 0-18446744073709551615"));
}

TEST_F(PauseFinderTest, FinishEndsEverything) {
  PauseFinder finder{log};
  const Events stream = events().add("100 >major 110 >domain_condition_wait@1");
  const Batch batch = stream.batch();
  for (const Event& event : batch.events()) finder.add(event, batch, world.registry);
  finder.finish(150);
  finder.finish(160);
  EXPECT_THAT(log.lines, ElementsAre("incarnation 1 seen 100", "1: incarnation 1 seen 110", "major 100 ended",
                                     "incarnation 1 ends 150", "1: incarnation 1 ends 150"));
  EXPECT_THAT(log.phases, testing::Contains("1: !domain_condition_wait ended"));
}

TEST_F(PauseFinderTest, ReadIdsByTheFamilyOfTheProcess) {
  world.registry.process(world.process).family = Family::before_5_3;
  constexpr std::uint16_t old_wait = 38, old_minor = 10;
  found(events().add(100, EventKind::begin, old_wait).add(110, EventKind::begin, old_minor));
  EXPECT_EQ(log.open, 1) << "the wait is none";
}

TEST_F(PauseFinderTest, MemoryHasBounds) {
  PauseFinder finder{log, PauseRule::outermost, 4, 8};
  auto stream = events();
  for (std::uint16_t domain = 0; domain < 8; ++domain) {
    for (std::uint64_t i = 0; i < 100; ++i) {
      stream.add(i, EventKind::begin, test::unknown_phase, 0, domain).add(i, EventKind::begin, phase_wait, 0, domain);
    }
  }
  const Batch batch = stream.batch();
  for (const Event& event : batch.events()) finder.add(event, batch, world.registry);
  EXPECT_EQ(finder.ignored(), 4U * 200);
  EXPECT_LE(log.open, 4);
}

/// Whatever a ring holds: each pause and phase that begins ends or is dropped once, and depths are as they were.
TEST_F(PauseFinderTest, BeginsAndEndsBalanceForAnyStream) {
  struct Balance : PauseListener {
    void on_phase_begin(const DomainLife& life, const PhaseBegin& phase) override { ++open[life.domain][phase.phase]; }
    void on_phase_end(const DomainLife& life, const PhaseEnd& phase) override {
      EXPECT_GT(open[life.domain][phase.phase]--, 0);
      EXPECT_LE(phase.begin_ns, phase.end_ns);
    }
    void on_phase_dropped(const DomainLife& life, const PhaseEnd& phase, Unfinished) override {
      EXPECT_GT(open[life.domain][phase.phase]--, 0);
      EXPECT_LE(phase.begin_ns, phase.end_ns);
    }
    void on_pause_begin(const DomainLife& life, const PhaseBegin&) override { EXPECT_EQ(pauses[life.domain]++, 0); }
    void on_pause_end(const DomainLife& life, const PhaseEnd&) override { EXPECT_EQ(pauses[life.domain]--, 1); }
    void on_pause_dropped(const DomainLife& life, const PhaseEnd&, Unfinished) override {
      EXPECT_EQ(pauses[life.domain]--, 1);
    }
    void on_domain_begin(const DomainLife& life, std::uint64_t, bool) override { EXPECT_EQ(alive[life.domain]++, 0); }
    void on_domain_end(const DomainLife& life, std::uint64_t) override {
      EXPECT_EQ(alive[life.domain]--, 1);
      EXPECT_EQ(pauses[life.domain], 0);
    }
    std::map<int, std::map<int, int>> open;
    std::map<int, int> pauses, alive;
  };
  std::mt19937 random{3};
  const auto pick = [&](int below) { return std::uniform_int_distribution{0, below - 1}(random); };
  constexpr std::uint16_t phases[] = {phase_major, phase_minor,         stw_leader, stw_handler,
                                      major_mark,  explicit_full_major, phase_wait, test::unknown_phase};
  for (const PauseRule rule : {PauseRule::outermost, PauseRule::olly}) {
    Balance balance;
    PauseFinder finder{balance, rule, 16, 12};
    std::uint64_t now = 1000;
    for (int i = 0; i < 50'000; ++i) {
      now += static_cast<std::uint64_t>(pick(10));
      auto stream = events();
      const auto domain = static_cast<std::uint16_t>(pick(3));
      const std::uint64_t time = pick(50) == 0 ? now - 500 : now;
      const std::uint16_t phase = phases[pick(8)];
      if (const int what = pick(100); what < 48) {
        stream.add(time, EventKind::begin, phase, 0, domain);
      } else if (what < 96) {
        stream.add(time, EventKind::end, phase, 0, domain);
      } else if (what < 98) {
        stream.add(time, EventKind::lifecycle, static_cast<std::uint16_t>(pick(9)), 0, domain);
      } else if (what < 99) {
        stream.add(std::to_string(time) + " ?@" + std::to_string(domain));
      } else {
        stream.add_record(time, EventKind::process, ProcessRecord{world.process, 0, 0},
                          static_cast<std::uint16_t>(pick(8)));
      }
      const Batch batch = stream.batch();
      finder.add(batch.events().front(), batch, world.registry);
    }
    finder.finish(now);
    for (const auto& [domain, open] : balance.open) {
      for (const auto& [phase, count] : open) EXPECT_EQ(count, 0) << domain << ' ' << phase;
    }
    for (const auto& [domain, count] : balance.alive) EXPECT_EQ(count, 0);
  }
}

}  // namespace
}  // namespace rtev
