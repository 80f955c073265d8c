// SPDX-License-Identifier: MIT
#include "analysis/pauses/pause_finder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "unit/stream/world.hpp"

namespace rtev {
namespace {

using test::Events, test::phase_major, test::phase_minor, test::phase_minor_local_roots, test::phase_wait, test::World;
using testing::ElementsAre, testing::IsEmpty;

// Ids of the 5.3+ family.
constexpr std::uint16_t explicit_full_major = 4, interrupt_remote = 19, major_slice = 27, stw_handler = 34,
                        stw_leader = 35, major_mark = 10;

/// Writes down what it is told, one line each.
class Log : public PauseListener {
 public:
  void on_domain_begin(const DomainLife& life, std::uint64_t time, bool certain) override {
    lines.push_back(who(life) + "domain " + std::to_string(life.incarnation) + (certain ? " begins " : " seen ") +
                    std::to_string(time));
  }
  void on_domain_end(const DomainLife& life, std::uint64_t time) override {
    lines.push_back(who(life) + "domain " + std::to_string(life.incarnation) + " ends " + std::to_string(time));
  }
  void on_phase_begin(const DomainLife& life, const PhaseBegin& phase) override {
    phases.push_back(who(life) + '>' + name(phase.phase) + std::to_string(phase.depth));
  }
  void on_phase_end(const DomainLife& life, const PhaseEnd& phase) override {
    phases.push_back(who(life) + '<' + name(phase.phase) + std::to_string(phase.depth) + ' ' +
                     std::to_string(phase.end_ns - phase.begin_ns));
    EXPECT_LE(phase.begin_ns, phase.end_ns);
  }
  void on_phase_dropped(const DomainLife& life, const PhaseEnd& phase, Unfinished reason) override {
    phases.push_back(who(life) + '!' + name(phase.phase) + std::to_string(phase.depth) + ' ' +
                     std::string{to_string(reason)});
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
  /// Feeds the events; the first thing the log says, that the domain was seen, is left out.
  std::vector<std::string> found(const Events& events, PauseRule rule = PauseRule::outermost) {
    PauseFinder finder{log, rule};
    const Batch batch = events.batch();
    for (const Event& event : batch.events()) finder.add(event, batch, world.registry);
    ends_without_begin = finder.ends_without_begin();
    auto lines = log.lines;
    if (!lines.empty() && lines.front().contains("domain 0 ")) lines.erase(lines.begin());
    return lines;
  }
  Events events() const { return Events{world.slot}; }

  World world;
  Log log;
  std::uint64_t ends_without_begin = 0;
};

Events& lose(Events& events, std::uint64_t time, std::uint16_t domain = 0) {
  return events.add_record(time, EventKind::lost, Loss{.words = 100, .from_ns = time - 10, .to_ns = time}, 0, domain);
}

TEST_F(PauseFinderTest, AreTheOutermostSpans) {
  EXPECT_THAT(found(events()
                        .add(100, EventKind::begin, phase_major)
                        .add(110, EventKind::begin, major_slice)
                        .add(120, EventKind::begin, major_mark)
                        .add(150, EventKind::end, major_mark)
                        .add(160, EventKind::end, major_slice)
                        .add(170, EventKind::end, phase_major)
                        .add(200, EventKind::begin, stw_leader)
                        .add(205, EventKind::end, stw_leader)),
              ElementsAre("major 100-170", "stw_leader 200-205"));
  EXPECT_THAT(log.phases, ElementsAre(">major0", ">major_slice1", ">major_mark2", "<major_mark2 30", "<major_slice1 50",
                                      "<major0 70", ">stw_leader0", "<stw_leader0 5"));
  EXPECT_THAT(log.begun, ElementsAre("major 100", "stw_leader 200"));
}

TEST_F(PauseFinderTest, OllyCountsWhatIsInExplicitCollections) {
  const auto full_major = [this] {
    return events()
        .add(100, EventKind::begin, explicit_full_major)
        .add(110, EventKind::begin, stw_leader)
        .add(115, EventKind::begin, phase_minor)
        .add(118, EventKind::end, phase_minor)
        .add(120, EventKind::end, stw_leader)
        .add(130, EventKind::begin, phase_major)
        .add(140, EventKind::end, phase_major)
        .add(150, EventKind::end, explicit_full_major);
  };
  EXPECT_THAT(found(full_major()), ElementsAre("explicit_gc_full_major 100-150"));
  log = {};
  EXPECT_THAT(found(full_major(), PauseRule::olly), ElementsAre("stw_leader 110-120", "major 130-140"));
}

TEST_F(PauseFinderTest, WaitingForAConditionIsNone) {
  // The backup thread collects while the domain's thread waits.
  EXPECT_THAT(found(events()
                        .add(100, EventKind::begin, phase_wait)
                        .add(110, EventKind::begin, stw_handler)
                        .add(120, EventKind::begin, phase_minor)
                        .add(130, EventKind::end, phase_minor)
                        .add(135, EventKind::end, phase_wait)
                        .add(140, EventKind::end, stw_handler)),
              ElementsAre("stw_handler 110-140"));
  EXPECT_THAT(log.phases, ElementsAre(">domain_condition_wait0", ">stw_handler0", ">minor1", "<minor1 10",
                                      "<domain_condition_wait1 35", "<stw_handler0 30"));
}

TEST_F(PauseFinderTest, SeveralThreadsOfADomainMayWait) {
  EXPECT_THAT(found(events()
                        .add(100, EventKind::begin, phase_wait)
                        .add(110, EventKind::begin, phase_wait)
                        .add(120, EventKind::end, phase_wait)
                        .add(150, EventKind::end, phase_wait)
                        .add(160, EventKind::end, phase_wait)),
              IsEmpty());
  EXPECT_THAT(log.phases, ElementsAre(">domain_condition_wait0", ">domain_condition_wait0",
                                      "<domain_condition_wait0 10", "<domain_condition_wait0 50"));
  EXPECT_EQ(ends_without_begin, 1U);
}

TEST_F(PauseFinderTest, AnEndWithoutABeginChangesNothing) {
  EXPECT_THAT(found(events()
                        .add(90, EventKind::end, phase_major)
                        .add(100, EventKind::begin, stw_leader)
                        .add(110, EventKind::end, phase_major)
                        .add(120, EventKind::end, stw_leader)),
              ElementsAre("stw_leader 100-120"));
  EXPECT_EQ(ends_without_begin, 2U);
}

TEST_F(PauseFinderTest, AnInnerSpanWithoutAnEndEndsWithTheOneAroundIt) {
  EXPECT_THAT(found(events()
                        .add(100, EventKind::begin, phase_major)
                        .add(110, EventKind::begin, major_slice)
                        .add(120, EventKind::begin, major_mark)
                        .add(150, EventKind::end, phase_major)
                        .add(160, EventKind::begin, phase_major)
                        .add(170, EventKind::end, phase_major)),
              ElementsAre("major 100-150", "major 160-170"));
  EXPECT_THAT(log.phases, ElementsAre(">major0", ">major_slice1", ">major_mark2", "!major_mark2 no_end",
                                      "!major_slice1 no_end", "<major0 50", ">major0", "<major0 10"));
}

TEST_F(PauseFinderTest, OneWithoutAnEndIsDroppedWhenItsPhaseBeginsAgain) {
  EXPECT_THAT(found(events()
                        .add(100, EventKind::begin, stw_leader)
                        .add(110, EventKind::begin, phase_minor)
                        .add(200, EventKind::begin, stw_leader)
                        .add(210, EventKind::end, stw_leader)),
              ElementsAre("stw_leader 100 no_end", "stw_leader 200-210"));
  EXPECT_EQ(log.open, 0);
}

TEST_F(PauseFinderTest, PhasesThatMayNestDo) {
  // A finaliser that collects.
  EXPECT_THAT(found(events()
                        .add(100, EventKind::begin, explicit_full_major)
                        .add(110, EventKind::begin, explicit_full_major)
                        .add(120, EventKind::end, explicit_full_major)
                        .add(130, EventKind::end, explicit_full_major)),
              ElementsAre("explicit_gc_full_major 100-130"));
}

TEST_F(PauseFinderTest, ALossInOneMakesItUnknown) {
  auto stream = events();
  stream.add(100, EventKind::begin, stw_leader).add(110, EventKind::begin, phase_minor);
  lose(stream, 150)
      .add(160, EventKind::end, phase_minor)
      .add(170, EventKind::end, stw_leader)
      .add(200, EventKind::begin, stw_leader)
      .add(220, EventKind::end, stw_leader);
  EXPECT_THAT(found(stream), ElementsAre("stw_leader 100 lost", "lost 100", "stw_leader 200-220"));
}

TEST_F(PauseFinderTest, AfterALossInnerSpansAreNoPauses) {
  auto stream = events();
  stream.add(100, EventKind::begin, stw_leader);
  lose(stream, 150)
      .add(160, EventKind::begin, phase_minor)
      .add(165, EventKind::begin, phase_minor_local_roots)
      .add(170, EventKind::end, phase_minor_local_roots)
      .add(180, EventKind::end, phase_minor)
      .add(190, EventKind::end, stw_leader)
      .add(200, EventKind::begin, phase_minor)
      .add(210, EventKind::end, phase_minor);
  EXPECT_THAT(found(stream), ElementsAre("stw_leader 100 lost", "lost 100", "minor 200-210"))
      << "the end of the section makes the rest certain";
  EXPECT_THAT(log.phases, testing::Contains("<minor_local_roots1 5")) << "phases count all the same";
}

TEST_F(PauseFinderTest, ALossBetweenThemLosesNoneThatIsSeen) {
  auto stream = events();
  stream.add(100, EventKind::begin, phase_major).add(110, EventKind::end, phase_major);
  lose(stream, 150).add(160, EventKind::begin, phase_major).add(170, EventKind::end, phase_major);
  EXPECT_THAT(found(stream), ElementsAre("major 100-110", "lost 100", "major 160-170"));
}

TEST_F(PauseFinderTest, AStreamThatBeginsWithinOneDoesNotCountItsParts) {
  EXPECT_THAT(found(events()
                        .add(100, EventKind::begin, phase_minor_local_roots)
                        .add(110, EventKind::end, phase_minor_local_roots)
                        .add(120, EventKind::end, phase_minor)
                        .add(130, EventKind::begin, major_mark)
                        .add(140, EventKind::end, major_mark)
                        .add(150, EventKind::end, interrupt_remote)
                        .add(160, EventKind::begin, interrupt_remote)
                        .add(170, EventKind::end, interrupt_remote)),
              ElementsAre("interrupt_remote 160-170"));
}

TEST_F(PauseFinderTest, OtherProducersMayBeginWithAnything) {
  world.slot = world.registry.add_ring({.process = world.process, .domains = 1, .producer = Producer{}});
  EXPECT_THAT(found(events().add(100, EventKind::begin, major_mark).add(110, EventKind::end, major_mark)),
              ElementsAre("major_mark 100-110"));
}

TEST_F(PauseFinderTest, DomainsThatUseANumberAgainAreOthers) {
  EXPECT_THAT(found(events()
                        .add(100, Lifecycle::domain_spawn, 4242, 1)
                        .add(110, EventKind::begin, stw_handler, 0, 1)
                        .add(120, EventKind::end, stw_handler, 0, 1)
                        .add(130, EventKind::begin, phase_major, 0, 1)
                        .add(140, Lifecycle::domain_terminate, 4242, 1)
                        .add(141, EventKind::end, phase_major, 0, 1)
                        // It collects before it says that it is there.
                        .add(200, EventKind::begin, stw_handler, 0, 1)
                        .add(210, EventKind::end, stw_handler, 0, 1)
                        .add(220, Lifecycle::domain_spawn, 4242, 1)
                        .add(230, Lifecycle::domain_terminate, 4242, 1)
                        .add(300, Lifecycle::domain_spawn, 4242, 1)
                        // Its end is missing.
                        .add(400, Lifecycle::domain_spawn, 4242, 1)),
              ElementsAre("1: stw_handler 110-120", "1: major 130 ended", "1: domain 0 ends 140",
                          "1: domain 1 begins 200", "1: stw_handler 200-210", "1: domain 1 ends 230",
                          "1: domain 2 begins 300", "1: domain 2 ends 400", "1: domain 3 begins 400"));
  EXPECT_EQ(log.open, 0);
}

TEST_F(PauseFinderTest, EndWithTheProcess) {
  auto stream = events();
  stream.add(100, EventKind::begin, phase_major).add(105, EventKind::begin, phase_major, 0, 1);
  stream.add_record(200, EventKind::process, ProcessRecord{world.process, 0, 0},
                    static_cast<std::uint16_t>(ProcessAction::exit));
  EXPECT_THAT(found(stream), ElementsAre("1: domain 0 seen 105", "major 100 ended", "domain 0 ends 200",
                                         "1: major 105 ended", "1: domain 0 ends 200"));
  EXPECT_EQ(log.open, 0);
}

TEST_F(PauseFinderTest, TheSectionThatTakesTheRingDownIsNone) {
  EXPECT_THAT(found(events()
                        .add(100, Lifecycle::ring_start, 4242)
                        .add(110, EventKind::begin, phase_major)
                        .add(120, EventKind::end, phase_major)
                        .add(130, Lifecycle::ring_stop)
                        .add(140, EventKind::begin, stw_leader)),
              ElementsAre("major 110-120"));
  EXPECT_EQ(log.open, 0);
}

TEST_F(PauseFinderTest, WhatWasOpenWhenEventsWerePausedIsUnknown) {
  EXPECT_THAT(found(events()
                        .add(100, EventKind::begin, stw_leader)
                        .add(200, Lifecycle::ring_resume)
                        .add(210, EventKind::begin, stw_leader)
                        .add(220, EventKind::end, stw_leader)),
              ElementsAre("stw_leader 100 no_end", "stw_leader 210-220"));
}

TEST_F(PauseFinderTest, AClockThatGoesBackMakesThemUnknown) {
  EXPECT_THAT(found(events()
                        .add(100, EventKind::begin, phase_major)
                        .add(90, EventKind::end, phase_major)
                        .late()
                        .add(95, EventKind::begin, phase_major)
                        .late()
                        .add(95, EventKind::end, phase_major)
                        .add(0, EventKind::begin, phase_major)
                        .add(UINT64_MAX, EventKind::end, phase_major)),
              ElementsAre("major 100 clock", "major 95-95 late", "major 0-18446744073709551615"));
}

TEST_F(PauseFinderTest, FinishEndsEverything) {
  PauseFinder finder{log};
  const Events stream = events().add(100, EventKind::begin, phase_major).add(110, EventKind::begin, phase_wait, 0, 1);
  const Batch batch = stream.batch();
  for (const Event& event : batch.events()) finder.add(event, batch, world.registry);
  finder.finish(150);
  finder.finish(160);
  EXPECT_THAT(log.lines, ElementsAre("domain 0 seen 100", "1: domain 0 seen 110", "major 100 ended",
                                     "domain 0 ends 150", "1: domain 0 ends 150"));
  EXPECT_THAT(log.phases, testing::Contains("1: !domain_condition_wait0 ended"));
}

TEST_F(PauseFinderTest, ReadIdsByTheFamilyOfTheProcess) {
  world.registry.process(world.process).family = Family::before_5_3;
  constexpr std::uint16_t old_wait = 38, old_minor = 10;
  found(events().add(100, EventKind::begin, old_wait).add(110, EventKind::begin, old_minor));
  EXPECT_EQ(log.open, 1) << "the wait is none";
}

TEST_F(PauseFinderTest, MemoryHasBounds) {
  PauseFinder finder{log, PauseRule::outermost, {.domains = 4, .depth = 8}};
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
    void on_pause_begin(const DomainLife& life, const PhaseBegin& root) override {
      EXPECT_EQ(pauses[life.domain]++, 0);
      EXPECT_TRUE(root.in_pause);
    }
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
    PauseFinder finder{balance, rule, {.domains = 16, .depth = 12}};
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
        lose(stream, time, domain);
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
