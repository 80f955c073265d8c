// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/clock.hpp"
#include "load/domain.hpp"
#include "load/event_clock.hpp"
#include "load/stop.hpp"
#include "rtev/ring_reader.hpp"
#include "support/temp_dir.hpp"

namespace rtev::load {
namespace {

/// A writer with one domain that writes a plan, and a reader of its ring.
class DomainRunTest : public ::testing::Test {
 protected:
  DomainRunTest() {
    for (const UserEventSpec& spec : user_events)
      registered_.push_back(writer_.register_event(spec.name, spec.type).value());
  }

  DomainRun run(std::optional<Pace> pace, std::uint64_t events = UINT64_MAX) {
    return {writer_.domain(0), plan_, {.pace = pace, .events = events, .user_events = registered_}};
  }

  /// The events in the ring, without the writer's own ring_start.
  std::vector<Event> read() {
    std::vector<Event> events;
    reader_.poll([&](const Batch& batch) {
      for (const Event& event : batch.events()) {
        events.push_back(event);
        if (event.kind == EventKind::user_custom) {
          const auto payload = batch.payload(event);
          payloads_.emplace_back(payload.begin(), payload.end());
        }
      }
    });
    EXPECT_EQ(reader_.accounting().lost, 0u);
    if (!events.empty() && events.front().kind == EventKind::lifecycle) events.erase(events.begin());
    return events;
  }

  static EventCounts counts(const std::vector<Event>& events) {
    EventCounts result{};
    for (const Event& event : events) ++result.at(static_cast<std::size_t>(event.kind));
    return result;
  }

  test::TempDir dir_;
  Plan plan_ = Plan::make({});
  RingWriter writer_ = RingWriter::create({.directory = dir_.path(), .domains = 1, .clock = cached_time}).value();
  RingReader reader_ = RingReader::open(writer_.path()).value();
  std::vector<UserEvent> registered_;
  std::vector<std::vector<std::byte>> payloads_;
};

TEST_F(DomainRunTest, WritesExactlyThePlan) {
  DomainRun run = this->run(std::nullopt, plan_.steps().size() + 100);
  run.run_until(never);
  EXPECT_TRUE(run.is_done());
  const std::vector<Event> events = read();
  ASSERT_EQ(events.size(), plan_.steps().size() + 100);
  EXPECT_EQ(counts(events), run.counts());
  std::size_t custom = 0;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Step& step = plan_.steps()[i % plan_.steps().size()];
    ASSERT_EQ(events[i].kind, step.kind) << i;
    ASSERT_GT(events[i].time, before) << i;
    before = events[i].time;
    if (step.kind == EventKind::user_custom) {
      EXPECT_TRUE(std::ranges::equal(payloads_.at(custom++), plan_.payload(step))) << i;
    } else if (step.kind == EventKind::counter || step.kind == EventKind::user_int) {
      EXPECT_EQ(events[i].value, step.value) << i;
    }
    if (step.kind >= EventKind::user_unit) {
      EXPECT_EQ(reader_.user_event_name(events[i].id), user_events[step.id].name) << i;
    } else if (step.kind != EventKind::alloc) {
      EXPECT_EQ(events[i].id, step.id) << i;
    }
  }
}

TEST_F(DomainRunTest, LeavesNoSpanOpen) {
  // Slow enough that the ring holds all of it even if this process waits for a cpu for a while.
  DomainRun run = this->run(Pace(monotonic_ns(), 100'000));
  for (int i = 0; i < 5; ++i) {
    run.run_until(monotonic_ns() + 1'000'000);
    const EventCounts counts = run.counts();
    EXPECT_EQ(counts[static_cast<std::size_t>(EventKind::begin)], counts[static_cast<std::size_t>(EventKind::end)]);
    EXPECT_EQ(counts[static_cast<std::size_t>(EventKind::user_begin)],
              counts[static_cast<std::size_t>(EventKind::user_end)]);
  }
  EXPECT_EQ(counts(read()), run.counts());
}

TEST_F(DomainRunTest, PacedEventsAreNotEarly) {
  const std::uint64_t start = monotonic_ns();
  const Pace pace(start, 10'000);
  DomainRun run = this->run(pace, 100);
  run.run_until(never);
  const std::vector<Event> events = read();
  ASSERT_EQ(events.size(), 100u);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_GE(events[i].time, pace.time_of(i)) << i;
}

TEST_F(DomainRunTest, CatchesUpAfterAStall) {
  // The pace began a second ago.
  DomainRun run = this->run(Pace(monotonic_ns() - 1'000'000'000, 10'000), 10'000);
  const std::uint64_t before = monotonic_ns();
  run.run_until(before + 60'000'000'000);
  EXPECT_TRUE(run.is_done());
  EXPECT_EQ(run.counts(), plan_.counts(10'000));
}

TEST_F(DomainRunTest, NothingIsWrittenAfterAFailure) {
  writer_.pause();
  DomainRun run = this->run(std::nullopt, 1000);
  run.run_until(never);
  EXPECT_EQ(run.failure(), WriteStatus::off);
  EXPECT_TRUE(run.is_done());
  EXPECT_EQ(run.counts(), EventCounts{});
}

}  // namespace
}  // namespace rtev::load
