// SPDX-License-Identifier: MIT
#include "stream/timeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <tuple>

#include "base/clock.hpp"

namespace rtev {
namespace {

Event make_event(std::uint64_t time, std::uint32_t source, std::uint64_t value = 0) {
  return {.time = time, .value = value, .source = source, .id = 0, .kind = EventKind::counter, .flags = 0};
}

std::uint64_t no_limit() {
  return forever;
}

void push(Timeline& timeline, std::vector<Event> events) {
  timeline.push(Batch(events, {}));
}

struct Out {
  Event event;
  std::string payload;
};

std::vector<Out> deliver(Timeline& timeline, std::uint64_t watermark) {
  std::vector<Out> out;
  timeline.deliver(watermark, [&](const Batch& batch) {
    EXPECT_FALSE(batch.events().empty());
    EXPECT_LE(batch.events().size(), 4096u);
    for (const Event& event : batch.events()) {
      const auto payload = batch.payload(event);
      out.push_back({event, {reinterpret_cast<const char*>(payload.data()), payload.size()}});
    }
  });
  return out;
}

std::vector<std::uint64_t> times(const std::vector<Out>& out) {
  std::vector<std::uint64_t> result;
  for (const Out& each : out) result.push_back(each.event.time);
  return result;
}

using Times = std::vector<std::uint64_t>;

TEST(Timeline, SortsEventsOfManySources) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 30; ++round) {
    Timeline timeline(no_limit);
    std::vector<Event> all;
    const std::uint32_t sources = 1 + static_cast<std::uint32_t>(random() % 40);
    const std::uint64_t step = 1 + random() % 5;  // few different times: many ties
    std::uint64_t number = 0;
    for (std::uint32_t source = 0; source < sources; ++source) {
      std::uint64_t time = 100;
      std::vector<Event> events;
      for (std::uint64_t count = random() % 2000; count > 0; --count) {
        events.push_back(make_event(time += random() % step, source, ++number));
        if (random() % 100 == 0) push(timeline, std::exchange(events, {}));
        all.push_back(make_event(time, source, number));
      }
      push(timeline, events);
    }
    // Numbers grow in the order of arrival.
    std::ranges::sort(all, {}, [](const Event& event) { return std::tuple(event.time, event.source, event.value); });
    // Let out in pieces, at any watermark.
    std::vector<Out> out;
    for (std::uint64_t watermark = 100; !timeline.empty(); watermark += random() % 1000) {
      const auto piece = deliver(timeline, watermark);
      for (const Out& each : piece) ASSERT_LE(each.event.time, watermark);
      out.insert(out.end(), piece.begin(), piece.end());
    }
    ASSERT_EQ(out.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(out[i].event.value, all[i].value) << i;
      ASSERT_EQ(out[i].event.flags, 0);
    }
    EXPECT_EQ(timeline.late(), 0u);
  }
}

TEST(Timeline, SortsSourcesThatWriteInTurnsAndInRuns) {
  std::mt19937_64 random(5);
  Timeline timeline(no_limit);
  std::uint64_t time = 0, expected = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<Event>> events(3);
    for (int turn = 0; turn < 20; ++turn) {
      const auto source = static_cast<std::uint32_t>(random() % events.size());
      const std::uint64_t count = random() % 4 == 0 ? random() % 1500 : 1 + random() % 3;
      for (std::uint64_t i = 0; i < count; ++i) events[source].push_back(make_event(++time, source));
    }
    for (const auto& of_source : events) push(timeline, of_source);
    // What stays moves through the memory of the queues.
    for (const Out& each : deliver(timeline, time - random() % 3000)) ASSERT_EQ(each.event.time, ++expected);
  }
  for (const Out& each : deliver(timeline, forever)) ASSERT_EQ(each.event.time, ++expected);
  EXPECT_EQ(expected, time);
}

TEST(Timeline, TheGreatestTimeIsATimeToo) {
  Timeline timeline(no_limit);
  push(timeline, {make_event(forever, 1), make_event(forever, 1)});
  push(timeline, {make_event(forever - 1, 2)});
  EXPECT_EQ(deliver(timeline, forever).size(), 3u);
  EXPECT_TRUE(timeline.empty());
}

TEST(Timeline, HoldsEventsBeyondTheWatermark) {
  Timeline timeline(no_limit);
  push(timeline, {make_event(1, 5), make_event(5, 5), make_event(9, 5)});
  push(timeline, {make_event(6, 7)});
  EXPECT_TRUE(deliver(timeline, 0).empty());
  EXPECT_EQ(times(deliver(timeline, 5)), (Times{1, 5})) << "a silent source holds nothing back";
  EXPECT_FALSE(timeline.empty());
  EXPECT_EQ(times(deliver(timeline, forever)), (Times{6, 9}));
  EXPECT_TRUE(timeline.empty());
  EXPECT_EQ(timeline.staged_bytes(), 0u);
}

TEST(Timeline, AReleaseStopsAfterItsDeadlineAndGoesOnInTheNext) {
  std::uint64_t now = 0;
  Timeline timeline([&] { return ++now; });
  constexpr std::uint64_t count = 100'000;
  std::vector<Event> odd, even;
  for (std::uint64_t time = 1; time <= count; ++time) (time % 2 != 0 ? odd : even).push_back(make_event(0, time % 2));
  now = count;
  for (std::uint64_t i = 0; i < count / 2; ++i) {
    odd[i].time = 2 * i + 1;
    even[i].time = 2 * i + 2;
  }
  push(timeline, odd);
  push(timeline, even);
  std::uint64_t delivered = 0, until = 0;
  for (int deliveries = 1; until < count; ++deliveries) {
    ASSERT_LT(deliveries, 100);
    const std::uint64_t before = until;
    until = timeline.deliver(
        count,
        [&](const Batch& batch) {
          for (const Event& event : batch.events()) EXPECT_EQ(event.time, ++delivered);
        },
        now + 3);
    EXPECT_GT(until, before);
    EXPECT_EQ(delivered, until);
  }
  EXPECT_EQ(delivered, count);
  EXPECT_EQ(timeline.late(), 0u);
}

TEST(Timeline, AReleaseOfEventsAtTimeZeroStopsThere) {
  std::uint64_t now = 1;
  Timeline timeline([&] { return ++now; });
  push(timeline, std::vector<Event>(100'000, make_event(0, 1)));
  EXPECT_EQ(timeline.deliver(1'000, [](const Batch&) {}, now + 3), 0u);
  EXPECT_FALSE(timeline.empty());
}

TEST(Timeline, LateEventsAreFlaggedAndCounted) {
  Timeline timeline(no_limit);
  push(timeline, {make_event(10, 1)});
  deliver(timeline, 20);
  push(timeline, {make_event(15, 2), make_event(25, 2)});
  push(timeline, {make_event(5, 3), make_event(10, 3)});
  const auto out = deliver(timeline, 30);
  EXPECT_EQ(times(out), (Times{5, 10, 15, 25}));
  EXPECT_EQ(out[0].event.flags, flag_late);
  EXPECT_EQ(out[1].event.flags, 0) << "not before anything that is out";
  EXPECT_EQ(out[2].event.flags, 0) << "behind the watermark, yet nothing later is out";
  EXPECT_EQ(timeline.late(), 1u);
}

TEST(Timeline, TimesThatGoBackAreFlaggedAsLate) {
  Timeline timeline(no_limit);
  push(timeline, {make_event(10, 1), make_event(4, 1), make_event(11, 1)});
  push(timeline, {make_event(5, 2)});
  const auto out = deliver(timeline, forever);
  EXPECT_EQ(times(out), (Times{5, 10, 4, 11}));
  EXPECT_EQ(out[2].event.flags, flag_late);
  EXPECT_EQ(timeline.late(), 1u);
}

TEST(Timeline, TimesInTheFutureBecomeThePresent) {
  std::uint64_t now = 100, readings = 0;
  Timeline timeline([&] {
    ++readings;
    return now;
  });
  push(timeline, {make_event(90, 1), make_event(100, 1)});
  push(timeline, {make_event(50, 1)});
  EXPECT_EQ(readings, 1u) << "not read where the last reading decides";
  push(timeline, {make_event(99, 2), make_event(forever, 2), make_event(98, 2), make_event(101, 2)});
  const auto out = deliver(timeline, 100);
  ASSERT_EQ(out.size(), 7u) << "holds back nothing for ever";
  for (const Out& each : out) EXPECT_LE(each.event.time, 100u);
  EXPECT_EQ(std::ranges::count_if(out, [](const Out& each) { return each.event.time == 100; }), 3);
  EXPECT_EQ(std::ranges::count_if(out, [](const Out& each) { return each.event.flags == flag_late; }), 4)
      << "two that were to come, 50 after 100, 98 after 99";
}

TEST(Timeline, TimesOfSingleEventsInTheFutureBecomeThePresent) {
  Timeline timeline([] { return 100; });
  timeline.push(make_event(forever, 1), {});
  timeline.push(make_event(99, 1), {});
  const auto out = deliver(timeline, 100);
  EXPECT_EQ(times(out), (Times{99, 100}));
  EXPECT_EQ(out.back().event.flags, flag_late);
  push(timeline, {make_event(100, 2)});
  EXPECT_EQ(deliver(timeline, 100).back().event.flags, 0) << "it does not make others late";
}

/// Sources take turns, each with so many events in a row. Half of them have payloads.
void expect_payloads(std::uint32_t sources, int events_in_a_row, int rounds) {
  Timeline timeline(no_limit);
  std::uint64_t number = 0;
  for (int round = 0; round < rounds; ++round) {
    for (std::uint32_t source = 0; source < sources; ++source) {
      std::string payloads;
      std::vector<Event> events;
      for (int i = 0; i < events_in_a_row / 2; ++i) {
        const std::string text = std::to_string(++number) + ' ' + std::to_string(source);
        events.push_back(make_event(number, source, Batch::payload_ref(payloads.size(), text.size())));
        events.back().kind = EventKind::user_custom;
        payloads += text;
        events.push_back(make_event(number, source, number));
      }
      timeline.push(Batch(events, std::as_bytes(std::span(payloads))));
    }
    // Half of what is there, so that queues are compacted with something in them.
    for (const Out& each : deliver(timeline, number - sources * static_cast<std::uint64_t>(events_in_a_row) / 4)) {
      if (each.event.kind == EventKind::user_custom) {
        ASSERT_EQ(each.payload, std::to_string(each.event.time) + ' ' + std::to_string(each.event.source));
      } else {
        ASSERT_EQ(each.event.value, each.event.time);
      }
    }
  }
  EXPECT_EQ(deliver(timeline, forever).size(), sources * static_cast<std::uint64_t>(events_in_a_row) / 2);
}

TEST(Timeline, KeepsPayloadsOfManySources) {
  expect_payloads(5, 40, 200);
}

TEST(Timeline, KeepsPayloadsOfLongRuns) {
  expect_payloads(1, 1000, 100);
  expect_payloads(3, 12'000, 20);
}

TEST(Timeline, LateLongRunsAreFlagged) {
  Timeline timeline(no_limit);
  std::vector<Event> early, late;
  for (std::uint64_t time = 1; time <= 1000; ++time) early.push_back(make_event(time, 1));
  for (std::uint64_t time = 501; time <= 1500; ++time) late.push_back(make_event(time, 2));
  push(timeline, early);
  deliver(timeline, forever);
  push(timeline, late);
  const auto out = deliver(timeline, forever);
  ASSERT_EQ(out.size(), 1000u);
  for (const Out& each : out) EXPECT_EQ(each.event.flags, each.event.time < 1000 ? flag_late : 0) << each.event.time;
  EXPECT_EQ(timeline.late(), 499u);
}

TEST(Timeline, SingleEventsInNearlyTimeOrderAreSorted) {
  Timeline timeline(no_limit);
  std::mt19937_64 random(2);
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const std::uint64_t time = 100 + i * 3 + random() % 20;
    timeline.push(make_event(time, 1), {});
    expected.push_back(time);
  }
  std::ranges::sort(expected);
  EXPECT_EQ(times(deliver(timeline, forever)), expected);
  EXPECT_EQ(timeline.late(), 0u);
}

TEST(Timeline, BeyondTheMemoryBoundAllEventsAreDelivered) {
  Timeline timeline(no_limit, 2 * 1000 * sizeof(Event));
  std::vector<Event> events;
  for (std::uint64_t time = 0; time < 1000; ++time) events.push_back(make_event(1000 + time, 1));
  push(timeline, events);
  EXPECT_TRUE(deliver(timeline, 10).empty()) << "at the bound";
  push(timeline, {make_event(1500, 2)});
  EXPECT_EQ(deliver(timeline, 10).size(), 1001u);
  EXPECT_EQ(timeline.forced(), 1u);
  EXPECT_TRUE(timeline.empty());
  push(timeline, {make_event(1600, 2)});
  EXPECT_EQ(deliver(timeline, 1700)[0].event.flags, flag_late) << "what comes after a forced delivery may be late";
}

TEST(Timeline, RoomIsSharedByOwners) {
  Timeline timeline(no_limit, 2 * 100 * sizeof(Event));
  timeline.set_owner(1, 1001);
  timeline.set_owner(2, 1002);
  push(timeline, std::vector<Event>(80, make_event(1, Source{1, 0}.pack())));
  EXPECT_FALSE(timeline.has_room(1001)) << "more than three quarters";
  EXPECT_TRUE(timeline.has_room(1002));
  push(timeline, std::vector<Event>(30, make_event(1, Source{2, 0}.pack())));
  EXPECT_FALSE(timeline.has_room(1002)) << "nobody has";
  deliver(timeline, forever);
  EXPECT_TRUE(timeline.has_room(1001));
}

TEST(Timeline, PayloadsCountForTheMemoryBound) {
  Timeline timeline(no_limit, 1000);
  Event event = make_event(5, 1);
  event.kind = EventKind::user_custom;
  const std::string payload(1001, 'x');
  timeline.push(event, std::as_bytes(std::span(payload)));
  EXPECT_GT(timeline.staged_bytes(), 1001u);
  EXPECT_EQ(deliver(timeline, 0).size(), 1u);
}

TEST(Timeline, ForgetsTheQueuesOfARing) {
  Timeline timeline(no_limit);
  const std::uint32_t first = Source{3, 0}.pack(), second = Source{3, 1}.pack(), other = Source{4, 0}.pack();
  push(timeline, {make_event(1, first)});
  push(timeline, {make_event(2, other)});
  deliver(timeline, forever);
  push(timeline, {make_event(5, second)});
  timeline.forget(3, 4096);
  EXPECT_EQ(times(deliver(timeline, forever)), Times{5}) << "what waits is not forgotten";
  timeline.forget(3, 4096);
  push(timeline, {make_event(6, first)});
  push(timeline, {make_event(7, second)});
  EXPECT_EQ(times(deliver(timeline, forever)), (Times{6, 7})) << "the slot is used again";
}

TEST(Timeline, MemoryOfABurstIsReleased) {
  Timeline timeline(no_limit);
  const std::vector<Event> burst(100'000, make_event(1, 1));
  push(timeline, burst);
  deliver(timeline, forever);
  const std::size_t allocated = timeline.allocated_bytes();
  push(timeline, burst);
  EXPECT_EQ(timeline.allocated_bytes(), allocated) << "a source that goes on keeps it";
  deliver(timeline, forever);
  EXPECT_EQ(timeline.allocated_bytes(), allocated);
  deliver(timeline, forever);
  EXPECT_LE(timeline.allocated_bytes(), 256u << 10) << "one that is silent does not";
}

TEST(Timeline, BatchesAreSmall) {
  Timeline timeline(no_limit);
  std::vector<Event> events;
  for (std::uint64_t time = 0; time < 100'000; ++time) events.push_back(make_event(time, 1));
  push(timeline, events);
  EXPECT_EQ(deliver(timeline, forever).size(), 100'000u);
}

}  // namespace
}  // namespace rtev
