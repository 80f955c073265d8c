// SPDX-License-Identifier: MIT
#include "stream/span_tracker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unit/stream/world.hpp"

namespace rtev::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Ring = SpanRing<std::uint64_t>;
constexpr std::uint16_t request = 1, query = 2;

/// Writes a line for each call. The lane of a span is the value of its event.
class Log : public SpanObserver<Ring> {
 public:
  Lane* lane_for(Ring& ring, const EventContext& context) override { return &ring.lane(context.event.value); }
  void on_begin(Ring& ring, Lane& lane, const EventContext& context) override {
    add(ring, lane.open.size() - 1, '>' + name(context.event));
  }
  void on_end(Ring& ring, Lane& lane, const Event& begin, const EventContext& context) override {
    add(ring, lane.open.size(), '<' + name(begin) + ' ' + std::to_string(context.event.time - begin.time));
  }
  void on_unknown_end(Ring& ring, Lane& lane, const EventContext& context) override {
    add(ring, lane.open.size(), '?' + name(context.event));
  }
  void on_close(Ring& ring, Lane& lane, const Event& begin, std::uint64_t time, SpanMark mark) override {
    add(ring, lane.open.size(), '!' + name(begin) + ' ' + std::to_string(time) + ' ' + std::string(to_string(mark)));
  }
  void on_resume(Ring& ring, Lane& lane, const Event& begin, std::uint64_t time) override {
    add(ring, lane.open.size() - 1, '+' + name(begin) + ' ' + std::to_string(time));
  }
  void on_other(Ring& ring, const EventContext& context) override {
    add(ring, ring.lane(0).open.size(), std::string(known_name_of(context.event, context.registry)));
  }
  void on_domain_begin(Ring& ring, std::uint64_t, bool certain) override {
    if (with_domains) add(ring, 0, '#' + std::to_string(ring.life.incarnation) + (certain ? " begins" : " seen"));
  }
  void on_domain_end(Ring& ring, std::uint64_t time) override {
    if (with_domains) add(ring, 0, '#' + std::to_string(ring.life.incarnation) + " ends " + std::to_string(time));
  }
  void on_forget(Ring&) override { ++forgotten; }

  bool with_domains = false;
  std::vector<std::string> lines;  ///< indented by depth, behind the number of a domain other than 0
  int forgotten = 0;

 private:
  void add(const Ring& ring, std::size_t depth, const std::string& text) {
    const std::string domain = ring.life.domain == 0 ? "" : std::to_string(ring.life.domain) + ": ";
    lines.push_back(domain + std::string(depth, ' ') + text);
  }
  static std::string name(const Event& event) {
    if (!is_phase(event)) return event.id == request ? "request" : "query";
    return std::string(phase_name(Family::since_5_3, event.id));
  }
};

class SpanTrackerTest : public ::testing::Test {
 protected:
  using Options = SpanTracker<Ring>::Options;

  void use(const Options& options) { tracker.emplace(log, options); }
  /// Adds events; returns the lines that they led to.
  std::vector<std::string> add(const Events& events) {
    const Batch batch = events.batch();
    for (const Event& event : batch.events()) followed = tracker->add({event, batch, world.registry});
    return std::exchange(log.lines, {});
  }
  std::vector<std::string> exit(std::uint64_t time, ProcessIndex process) {
    return add(Events(0).add_record(time, EventKind::process, ProcessRecord{process, 0, 0},
                                    static_cast<std::uint16_t>(ProcessAction::exit)));
  }
  Events events() const { return Events{world.slot}; }

  World world;
  Log log;
  std::optional<SpanTracker<Ring>> tracker{std::in_place, log, Options{}};
  bool followed = false;
};

TEST_F(SpanTrackerTest, SpansNest) {
  EXPECT_THAT(
      add(events().add("100 >major 150 >minor").add(160, EventKind::user_unit, request).add("170 <minor 200 <major")),
      ElementsAre(">major", " >minor", "  ", " <minor 20", "<major 100"));
}

TEST_F(SpanTrackerTest, RingsAreSeparate) {
  const std::uint32_t other = world.add_ring(world.registry.add_process(World::default_info()));
  add(events().add("1 >minor 5 >minor@1"));
  add(Events(other).add(7, EventKind::begin, phase_minor));
  EXPECT_THAT(add(events().add(6, EventKind::end, phase_minor, 0, 1)), ElementsAre("1: <minor 1"));
  EXPECT_THAT(add(Events(other).add(9, EventKind::end, phase_minor)), ElementsAre("<minor 2"));
  EXPECT_THAT(add(events().add(10, EventKind::end, phase_minor)), ElementsAre("<minor 9"));
}

TEST_F(SpanTrackerTest, UserSpansAndPhasesWithOneIdAreDifferent) {
  EXPECT_THAT(add(events()
                      .add(1, EventKind::user_begin, request)
                      .add(2, EventKind::begin, request)
                      .add(4, EventKind::user_end, request)
                      .add(5, EventKind::end, request)),
              ElementsAre(">request", " >explicit_gc_stat", " !explicit_gc_stat 4 interrupted", "<request 3",
                          "?explicit_gc_stat"));
}

TEST_F(SpanTrackerTest, AnEndWithoutABeginClosesNothing) {
  EXPECT_THAT(add(events().add("5 <minor 10 >major 12 <minor 15 <major")),
              ElementsAre("?minor", ">major", " ?minor", "<major 5"));
}

TEST_F(SpanTrackerTest, AnEndClosesWhatIsOpenInside) {
  EXPECT_THAT(add(events().add("10 >major 11 [1 12 >minor 20 <major")),
              ElementsAre(">major", " >request", "  >minor", "  !minor 20 interrupted", " !request 20 interrupted",
                          "<major 10"));
}

TEST_F(SpanTrackerTest, UserSpansMayOverlap) {
  use({.user_spans_overlap = true});
  EXPECT_THAT(add(events().add("10 [1 11 [2 12 >minor 20 ]1")),
              ElementsAre(">request", " >query", "  >minor", "  !minor 20 interrupted", " !query 20 interrupted",
                          "<request 10", "+query 20", " +minor 20"));
  EXPECT_THAT(add(events().add("21 >major 22 [1 30 <minor")),
              ElementsAre("  >major", "   >request", "   !request 30 interrupted", "  !major 30 interrupted",
                          " <minor 18", " +request 30"));
}

TEST_F(SpanTrackerTest, WaitsOfThreadsThatOverlapLeaveTheRestIntact) {
  // Thread A waits; thread B of the same domain runs and waits, too; A goes on before B does.
  EXPECT_THAT(add(events().add("0 [1 1 >domain_condition_wait 4 >domain_condition_wait 5 <domain_condition_wait 6 ]1 "
                               "7 <domain_condition_wait 8 >minor 9 <minor")),
              ElementsAre(">request", " >domain_condition_wait", "  >domain_condition_wait",
                          "  <domain_condition_wait 1", " !domain_condition_wait 6 interrupted", "<request 6",
                          "?domain_condition_wait", ">minor", "<minor 1"));
}

TEST_F(SpanTrackerTest, AThreadMayEndASpanOfAnother) {
  EXPECT_THAT(add(events()
                      .add(1, EventKind::user_begin, request, 7)
                      .add(2, EventKind::user_begin, query, 8)
                      .add(3, EventKind::user_end, request, 8)
                      .add(4, EventKind::user_end, query, 8)),
              ElementsAre(">request", ">query", "<request 2", "<query 2"));
}

TEST_F(SpanTrackerTest, ALossClosesTheSpansOfItsRing) {
  add(events().add("10 >major 20 >minor@1"));
  EXPECT_THAT(add(events().add_record(90, EventKind::lost, Loss{9, 50, 90})), ElementsAre("!major 50 lost", "lost"));
  EXPECT_THAT(add(events().add_bytes(95, EventKind::lost, "short", 0, 1)), ElementsAre("1: !minor 20 lost", "1: lost"));
}

TEST_F(SpanTrackerTest, AnExitClosesTheSpansOfItsProcess) {
  const ProcessIndex other = world.registry.add_process(World::default_info());
  const std::uint32_t slot = world.add_ring(other);
  add(events().add("1 >minor 2 >major@1"));
  add(Events(slot).add(3, EventKind::begin, phase_minor));
  EXPECT_THAT(exit(9, world.process), ElementsAre("!minor 9 process ended", "1: !major 9 process ended"));
  EXPECT_EQ(log.forgotten, 2);
  EXPECT_THAT(exit(9, world.process), IsEmpty());
  EXPECT_THAT(add(events().add(8, EventKind::end, phase_minor).late()), ElementsAre("?minor"));
  EXPECT_THAT(add(Events(slot).add(10, EventKind::end, phase_minor)), ElementsAre("<minor 7"));
}

TEST_F(SpanTrackerTest, ARingThatBeginsAnewClosesTheSpansOfItsProcess) {
  add(events().add("1 >minor 2 >major@1"));
  EXPECT_THAT(add(events().add(3, Lifecycle::ring_start)),
              ElementsAre("!minor 3 domain ended", "1: !major 3 domain ended", "ring_start"));
}

TEST_F(SpanTrackerTest, RingsAreVisitedAgainAfterAnEvent) {
  const auto visited = [&](SpanVisit kind) {
    std::vector<int> domains;
    tracker->each_used_ring(world.process, kind, [&](Ring& ring) { domains.push_back(ring.life.domain); });
    return domains;
  };
  add(events().add("1 >minor 2 >major@1"));
  EXPECT_THAT(visited(SpanVisit::resume), ElementsAre(0, 1));
  EXPECT_THAT(visited(SpanVisit::resume), IsEmpty());
  add(events().add("3 <major@1"));
  EXPECT_THAT(visited(SpanVisit::resume), ElementsAre(1));
  EXPECT_THAT(visited(SpanVisit::restart), ElementsAre(0, 1)) << "each kind for itself";
  add(events().add("4 <minor"));
  exit(9, world.process);
  EXPECT_THAT(visited(SpanVisit::restart), IsEmpty());
}

TEST_F(SpanTrackerTest, ASlotThatIsUsedAgainIsOfAnotherRing) {
  add(events().add(1, EventKind::begin, phase_minor));
  world.registry.restore_ring(world.slot, {.process = world.registry.add_process({}), .domains = 1});
  EXPECT_THAT(add(events().add(5, EventKind::end, phase_minor)), ElementsAre("!minor 5 process ended", "?minor"));
}

TEST_F(SpanTrackerTest, FinishEndsEverythingOnce) {
  log.with_domains = true;
  add(events().add(1, EventKind::begin, phase_minor));
  tracker->finish(7);
  tracker->finish(8);
  EXPECT_THAT(log.lines, ElementsAre("!minor 7 recording ended", "#1 ends 7"));
}

TEST_F(SpanTrackerTest, IncarnationsOfADomainFollowEachOther) {
  log.with_domains = true;
  EXPECT_THAT(add(events()
                      .add(1, EventKind::begin, phase_minor)  // a domain may collect before it says that it is there
                      .add("2 !domain_spawn 3 <minor 4 >major 5 !domain_terminate 6 <major")),
              ElementsAre("#1 seen", ">minor", " domain_spawn", "<minor 2", ">major", " domain_terminate",
                          "!major 5 domain ended", "#1 ends 5", "?major"));
  EXPECT_THAT(add(events().add(10, EventKind::user_unit).add(11, Lifecycle::domain_spawn)),
              ElementsAre("#2 begins", "", "domain_spawn"));
  EXPECT_THAT(add(events().add("20 >minor 21 !domain_spawn")),
              ElementsAre(">minor", "!minor 21 domain ended", "#2 ends 21", "#3 begins", "domain_spawn"))
      << "the end of the second is missing";
}

TEST_F(SpanTrackerTest, AfterALossASpawnIsOfAnotherIncarnation) {
  log.with_domains = true;
  EXPECT_THAT(
      add(events().add_record(1, EventKind::lost, Loss{9, 0, 1}).add("2 >minor 3 !domain_spawn")),
      ElementsAre("#1 seen", "lost", ">minor", "!minor 3 domain ended", "#1 ends 3", "#2 begins", "domain_spawn"));
  EXPECT_THAT(add(events().add("5 !domain_terminate@1 6 !ring_start@1")),
              ElementsAre("1: #1 seen", "1: domain_terminate", "1: #1 ends 5", "1: #2 begins", "1: ring_start"));
}

TEST_F(SpanTrackerTest, ADeepLaneLosesItsOuterHalf) {
  use({.depth = 4});
  auto deep = events();
  for (std::uint64_t i = 0; i < 4; ++i) deep.add(i, EventKind::user_begin, request);
  add(deep);
  EXPECT_THAT(add(events().add(10, EventKind::user_begin, query)),
              ElementsAre("   !request 10 interrupted", "  !request 10 interrupted", " !request 10 interrupted",
                          "!request 10 interrupted", "+request 10", " +request 10", "  >query"));
  EXPECT_THAT(add(events().add("11 ]2 12 ]1")), ElementsAre("  <query 1", " <request 9"));
}

TEST_F(SpanTrackerTest, OpenSpansAreBoundedInAll) {
  use({.open = 2});
  EXPECT_THAT(add(events().add("1 [1 2 [1 3 >minor@1 4 <minor@1")),
              ElementsAre(">request", " >request", "1: minor", "1: ?minor"))
      << "a begin without room is an event like others";
  EXPECT_THAT(add(events().add(5, EventKind::user_begin, query)),
              ElementsAre(" !request 5 interrupted", "!request 5 interrupted", "+request 5", " >query"));
  add(events().add_record(6, EventKind::lost, Loss{}));
  EXPECT_THAT(add(events().add(7, EventKind::begin, phase_minor, 0, 1)), ElementsAre("1: >minor"));
}

TEST_F(SpanTrackerTest, RingsAreBounded) {
  use({.rings = 2});
  for (std::uint16_t domain = 0; domain < 3; ++domain) {
    add(events().add(1, EventKind::begin, phase_minor, 0, domain));
    EXPECT_EQ(followed, domain < 2);
  }
  exit(2, world.process);
  add(events().add(3, EventKind::begin, phase_minor, 0, 2));
  EXPECT_TRUE(followed);
}

TEST_F(SpanTrackerTest, RingsThatAreGoneWithoutAnExitAreForgotten) {
  constexpr int count = 3000;
  use({.rings = count / 2});
  add(events().add(1, EventKind::begin, phase_minor));
  for (int i = 0; i < count; ++i) {
    const std::uint32_t slot = world.add_ring(world.process);
    add(Events(slot).add(2, EventKind::begin, phase_minor, 0, 1));
    ASSERT_TRUE(followed);
    world.registry.remove_ring(slot);
  }
  EXPECT_GT(log.forgotten, count / 2);
  EXPECT_THAT(add(events().add(3, EventKind::end, phase_minor)), ElementsAre("<minor 2"));
}

}  // namespace
}  // namespace rtev::test
