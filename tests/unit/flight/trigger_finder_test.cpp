// SPDX-License-Identifier: MIT
#include "flight/trigger_finder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/flight/flight_times.hpp"
#include "unit/stream/world.hpp"

namespace rtev::flight {
namespace {

using test::Events;
using test::World;

class TriggerFinderTest : public ::testing::Test {
 protected:
  TriggerFinder make(const std::vector<std::string>& conditions) {
    std::vector<Condition> parsed;
    for (const std::string& text : conditions) parsed.push_back(parse_condition(text).value());
    return TriggerFinder(std::move(parsed),
                         [this](const Firing& firing, const Registry&) { firings_.push_back(firing); });
  }
  /// "condition:value in ms", in order.
  std::string fired() const {
    std::string text;
    for (const Firing& firing : firings_) {
      text += (text.empty() ? "" : " ") + std::to_string(firing.condition) + ":" +
              std::to_string(static_cast<int>(firing.value / ms));
    }
    return text;
  }

  World world_;
  std::vector<Firing> firings_;
};

TEST_F(TriggerFinderTest, FindsLongPauses) {
  TriggerFinder finder = make({"pause>50ms", "pause>100ms"});
  Events events(world_.slot);
  events.add(1 * ms, EventKind::begin, 6).add(51 * ms, EventKind::end, 6);     // 50 ms: not more
  events.add(100 * ms, EventKind::begin, 6).add(160 * ms, EventKind::end, 6);  // 60 ms
  events.add(200 * ms, EventKind::begin, 6).add(400 * ms, EventKind::end, 6);  // 200 ms
  finder.consume(events.batch(), world_.registry);
  EXPECT_EQ(fired(), "0:60 0:200 1:200");
  EXPECT_EQ(firings_.front().process, world_.process);
}

TEST_F(TriggerFinderTest, DoesNotWaitForTheEndOfAPause) {
  TriggerFinder finder = make({"pause>50ms"});
  finder.consume(Events(world_.slot).add(100 * ms, EventKind::begin, 6).batch(), world_.registry);
  finder.advance(140 * ms, world_.registry);
  EXPECT_EQ(fired(), "");
  finder.advance(160 * ms, world_.registry);
  finder.advance(170 * ms, world_.registry);
  finder.consume(Events(world_.slot).add(300 * ms, EventKind::end, 6).batch(), world_.registry);
  EXPECT_EQ(fired(), "0:60");
}

TEST_F(TriggerFinderTest, FindsSpansByName) {
  world_.user_names = {{1, "request"}, {2, "other"}};
  TriggerFinder finder = make({"span:req*>10ms"});
  Events events(world_.slot);
  events.add(1 * ms, EventKind::user_begin, 1)
      .add(2 * ms, EventKind::user_begin, 2)
      .add(3 * ms, EventKind::user_begin, 1);
  events.add(20 * ms, EventKind::user_end, 1).add(30 * ms, EventKind::user_end, 2);
  finder.consume(events.batch(), world_.registry);
  EXPECT_EQ(fired(), "0:17");
  finder.advance(25 * ms, world_.registry);
  EXPECT_EQ(fired(), "0:17 0:24");  // the outer one, which is open
}

TEST_F(TriggerFinderTest, ForgetsSpansAfterALoss) {
  world_.user_names = {{1, "request"}};
  TriggerFinder finder = make({"span:*>10ms", "lost"});
  Events events(world_.slot);
  events.add(1 * ms, EventKind::user_begin, 1)
      .add_record(20 * ms, EventKind::lost, Loss{.words = 7, .from_ns = 2 * ms, .to_ns = 20 * ms});
  events.add(30 * ms, EventKind::user_end, 1);
  finder.consume(events.batch(), world_.registry);
  finder.advance(40 * ms, world_.registry);
  ASSERT_EQ(firings_.size(), 1u);
  EXPECT_EQ(firings_[0].condition, 1u);
  EXPECT_EQ(firings_[0].value, 7);
}

TEST_F(TriggerFinderTest, FindsDelaysOfTheScheduler) {
  TriggerFinder finder = make({"sched-delay>5ms"});
  const Thread us = test::make_thread(4242, 4242, "server", true), other = test::make_thread(1, 1, "other", false);
  world_.registry.process(world_.process).ended = true;  // known before the events of its threads are read
  Events events(0);
  events.add_record(1 * ms, EventKind::sched_switch,
                    SchedSwitch{.cpu = 0, .state = LeftState::sleeping, .prev = other, .next = us});
  events.add_record(2 * ms, EventKind::sched_switch,
                    SchedSwitch{.cpu = 0, .state = LeftState::preempted, .prev = us, .next = other});
  events.add_record(9 * ms, EventKind::sched_switch,
                    SchedSwitch{.cpu = 0, .state = LeftState::preempted, .prev = other, .next = us});
  finder.consume(events.batch(), world_.registry);
  EXPECT_EQ(fired(), "0:7");
  EXPECT_EQ(firings_.front().process, world_.process);
}

TEST_F(TriggerFinderTest, FindsAGreatShareOfPauses) {
  TriggerFinder finder = make({"gc-share>30%/1s"});
  const auto run = [&](std::uint64_t from_ms, std::uint64_t to_ms, std::uint64_t pause_ms) {
    for (std::uint64_t at = from_ms; at < to_ms; at += 50) {
      Events events(world_.slot);
      events.add(at * ms, EventKind::begin, 6).add((at + pause_ms) * ms, EventKind::end, 6);
      finder.consume(events.batch(), world_.registry);
      finder.advance((at + 49) * ms, world_.registry);
    }
  };
  run(1000, 3000, 10);
  EXPECT_TRUE(firings_.empty());
  run(3000, 5000, 20);
  ASSERT_FALSE(firings_.empty());
  EXPECT_NEAR(firings_.back().value, 0.4, 0.05);
}

TEST_F(TriggerFinderTest, FindsALargeHeap) {
  const auto words = find_counter(Family::since_5_3, "major_heap_words");
  ASSERT_TRUE(words);
  TriggerFinder finder = make({"heap>8M"});
  Events events(world_.slot);
  events.add(1, EventKind::counter, static_cast<std::uint16_t>(*words), 600'000);
  events.add(2, EventKind::counter, static_cast<std::uint16_t>(*words), 600'000, 1);
  events.add(3, EventKind::counter, static_cast<std::uint16_t>(*words), 100'000, 1);
  finder.consume(events.batch(), world_.registry);
  ASSERT_EQ(firings_.size(), 1u);
  EXPECT_EQ(firings_[0].value, 1'200'000.0 * 8);
}

}  // namespace
}  // namespace rtev::flight
