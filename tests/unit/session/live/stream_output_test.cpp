// SPDX-License-Identifier: MIT
#include "session/live/stream_output.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "unit/stream/world.hpp"

namespace rtev {
namespace {

using test::Events;

constexpr std::uint64_t flush_interval_ns = 20'000'000;

class StreamOutputTest : public testing::Test, protected Sink {
 protected:
  void header(const RunHeader&) override {}
  void consume(const Batch& batch, const Registry& registry) override {
    for (const Event& event : batch.events()) {
      for (const std::uint64_t end_ns = monotonic_ns() + event_ns_; event_ns_ != 0 && monotonic_ns() < end_ns;) {
      }
      calls_.push_back("event " + std::to_string(event.time));
      EXPECT_EQ(registry.process_of(event)->pid, 4242) << "the process is known as long as it has events";
    }
  }
  void advance(std::uint64_t time_ns, const Registry&) override {
    calls_.push_back("advance " + std::to_string(time_ns));
  }
  void flush() override { calls_.push_back("flush"); }
  void summary(const RunSummary&, const Registry&) override {}

  /// What the sink got since the last call.
  std::vector<std::string> calls() { return std::exchange(calls_, {}); }
  void stage(std::uint64_t time) { timeline_.push(Events(world_.slot).add(time, EventKind::begin, 1).batch()); }

  std::uint64_t event_ns_ = 0;  ///< that the sink takes for an event, at least
  test::World world_;
  Timeline timeline_{[] { return 100 * flush_interval_ns; }};
  StreamOutput output_{timeline_, world_.registry, *this};

 private:
  std::vector<std::string> calls_;
};
using Calls = std::vector<std::string>;

TEST_F(StreamOutputTest, ReleasesEventsUpToTheWatermark) {
  stage(10);
  stage(20);
  output_.deliver(15);
  EXPECT_EQ(calls(), (Calls{"event 10", "advance 15"}));
  EXPECT_FALSE(output_.is_empty());
  output_.deliver_all(Timeline::no_deadline);
  EXPECT_EQ(calls(), (Calls{"event 20"}));
  EXPECT_TRUE(output_.is_empty());
}

TEST_F(StreamOutputTest, KnowsHowLongTheEventsOfAnOwnerTake) {
  constexpr std::uint32_t owner = 7, events = 100'000;
  timeline_.set_owner(world_.slot, owner);
  std::uint64_t time = 10;
  const auto stage_many = [&] {
    for (const std::uint64_t end = time + events; time < end; ++time) stage(time);
  };
  stage_many();
  const std::uint64_t before = output_.staged_ns(owner);
  EXPECT_EQ(before, std::uint64_t{events} * 100) << "assumed";
  event_ns_ = 5000;
  output_.deliver_all(Timeline::no_deadline);
  EXPECT_EQ(output_.staged_ns(owner), 0u) << "nothing is staged";
  stage_many();
  EXPECT_GT(output_.staged_ns(owner), before);
  EXPECT_EQ(output_.staged_ns(owner + 1), 0u);
}

TEST_F(StreamOutputTest, TheEndHasADeadline) {
  for (std::uint64_t time = 0; time < 100'000; ++time) stage(10 + time);
  output_.deliver_all(0);
  const std::size_t written = calls().size();
  EXPECT_LT(written, 100'000u);
  RunSummary summary;
  output_.add_figures(summary);
  ASSERT_EQ(summary.drops.size(), 1u);
  EXPECT_EQ(summary.drops[0].kind, RunSummary::unwritten);
  EXPECT_EQ(summary.drops[0].count + written, 100'000u);
}

TEST_F(StreamOutputTest, ForgetsAnImageAfterItsLastEvent) {
  stage(10);
  output_.add_ended({.time_ns = 20, .process = world_.process, .slots = {world_.slot}});
  output_.deliver(15);
  EXPECT_NE(world_.registry.ring(world_.slot), nullptr);
  EXPECT_FALSE(output_.is_empty());
  stage(18);
  output_.deliver(20);
  EXPECT_EQ(calls(), (Calls{"event 10", "advance 15", "event 18", "advance 20"}));
  EXPECT_EQ(world_.registry.ring(world_.slot), nullptr);
  EXPECT_TRUE(output_.is_empty());
}

TEST_F(StreamOutputTest, FlushesFromTimeToTimeOrWhenNothingIsHeldBack) {
  stage(10);
  output_.flush(flush_interval_ns);
  output_.flush(2 * flush_interval_ns - 1);
  EXPECT_EQ(calls(), (Calls{"flush"})) << "an event is held back, and the last flush was not long ago";
  output_.flush(2 * flush_interval_ns);
  EXPECT_EQ(calls(), (Calls{"flush"}));
  output_.deliver_all(Timeline::no_deadline);
  output_.flush(2 * flush_interval_ns + 1);
  EXPECT_EQ(calls(), (Calls{"event 10", "flush"}));
}

TEST_F(StreamOutputTest, CountsEventsThatWereReleased) {
  stage(10);
  stage(20);
  output_.deliver(15);
  stage(12);
  output_.deliver(25);
  RunSummary summary;
  output_.add_figures(summary);
  EXPECT_EQ(summary.events[static_cast<std::size_t>(EventKind::begin)], 3u);
  EXPECT_EQ(summary.late, 1u);
  EXPECT_EQ(summary.forced, 0u);
}

}  // namespace
}  // namespace rtev
