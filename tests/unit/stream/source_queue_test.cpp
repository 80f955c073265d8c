// SPDX-License-Identifier: MIT
#include "stream/source_queue.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace rtev {
namespace {

Event plain(std::uint64_t time, std::uint16_t id = 0) {
  return {.time = time, .value = 7, .source = 1, .id = id, .kind = EventKind::counter, .flags = 0};
}
Event custom(std::uint64_t time) {
  return {.time = time, .value = 0, .source = 1, .id = 0, .kind = EventKind::user_custom, .flags = 0};
}
std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}
std::string text_of(const SourceQueue& queue, const Event& event) {
  const auto payload = queue.payload(event);
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}
void insert(SourceQueue& queue, Event event, std::span<const std::byte> payload) {
  Event& place = queue.insert(event.time);
  if (has_payload(event.kind)) event.value = queue.store(payload);
  place = event;
}

TEST(SourceQueue, NearlyOrderedInsertsAreSorted) {
  SourceQueue queue(1);
  for (const std::uint64_t time : {5u, 3u, 9u, 3u, 1u, 9u, 4u}) {
    insert(queue, plain(time, static_cast<std::uint16_t>(queue.events().size())), {});
  }
  std::vector<std::pair<std::uint64_t, int>> order;
  for (const Event& event : queue.events()) order.emplace_back(event.time, event.id);
  EXPECT_EQ(order, (decltype(order){{1, 4}, {3, 1}, {3, 3}, {4, 6}, {5, 0}, {9, 2}, {9, 5}}))
      << "equal times in order of arrival";
}

TEST(SourceQueue, InsertGoesBehindTakenEvents) {
  SourceQueue queue(1);
  for (const std::uint64_t time : {1u, 2u, 3u, 4u}) insert(queue, plain(time), {});
  queue.pop(1);
  insert(queue, plain(0), {});
  ASSERT_EQ(queue.events().size(), 4u);
  EXPECT_EQ(queue.events().front().time, 0u);
}

TEST(SourceQueue, BatchesBringTheirPayloads) {
  SourceQueue queue(1);
  const std::string payloads = "junk-one-two";
  std::vector<Event> events{custom(1), plain(2), custom(3), custom(4)};
  events[0].value = Batch::payload_ref(5, 3);
  events[2].value = Batch::payload_ref(9, 3);
  events[3].value = Batch::payload_ref(9, 300);
  queue.append(events, Batch(events, bytes(payloads)));
  queue.append(events, Batch(events, bytes(payloads)));
  queue.pop(1);
  EXPECT_EQ(queue.events()[0].value, 7u) << "numbers stay";
  EXPECT_EQ(text_of(queue, queue.events()[1]), "two");
  EXPECT_EQ(text_of(queue, queue.events()[2]), "") << "a reference out of the batch";
  EXPECT_EQ(text_of(queue, queue.events()[3]), "one");
}

TEST(SourceQueue, PayloadsStayWhenTheFrontIsTaken) {
  SourceQueue queue(1);
  std::deque<std::string> model;
  std::uint64_t time = 0;
  for (int round = 0; round < 2000; ++round) {
    for (int i = 0; i < 7; ++i) {
      model.push_back(std::to_string(round * 7 + i) + std::string(static_cast<std::size_t>(i * 5), 'x'));
      insert(queue, custom(++time), bytes(model.back()));
    }
    for (std::size_t i = 0; i < 1 + static_cast<std::size_t>(round) % 11 && !queue.empty(); ++i) {
      ASSERT_EQ(text_of(queue, queue.events().front()), model.front());
      queue.pop(1);
      model.pop_front();
    }
    ASSERT_EQ(queue.size(), model.size());
    ASSERT_LE(queue.bytes(), model.size() * 200 + 20'000) << "what is taken is not kept";
  }
  for (; !queue.empty(); queue.pop(1), model.pop_front()) {
    ASSERT_EQ(text_of(queue, queue.events().front()), model.front());
  }
  EXPECT_EQ(queue.bytes(), 0u);
}

TEST(SourceQueue, ReusesItsMemoryInACircle) {
  SourceQueue queue(1);
  std::uint64_t pushed = 0, popped = 0;
  bool wrapped = false;
  for (int round = 0; round < 1000; ++round) {
    std::vector<Event> events;
    for (int i = 0; i < 7; ++i) events.push_back(plain(++pushed));
    queue.append(events, Batch(events, {}));
    insert(queue, plain(++pushed), {});
    wrapped |= !queue.wrapped_events().empty();
    ASSERT_EQ(queue.events().size() + queue.wrapped_events().size(), queue.size());
    std::uint64_t expected = popped;
    for (const auto& part : {queue.events(), queue.wrapped_events()}) {
      for (const Event& event : part) ASSERT_EQ(event.time, ++expected);
    }
    for (; queue.size() > 13; ++popped) queue.pop(1);
  }
  EXPECT_TRUE(wrapped);
  EXPECT_LE(queue.allocated_bytes(), 32 * sizeof(Event));
}

TEST(SourceQueue, MemoryOfABurstIsReleased) {
  SourceQueue queue(1);
  const std::string large(10'000, 'x');
  for (std::uint64_t time = 0; time < 1000; ++time) insert(queue, custom(time), bytes(large));
  EXPECT_GT(queue.allocated_bytes(), 10'000'000u);
  queue.pop(999);
  insert(queue, plain(2000), {});
  queue.trim(100'000);
  EXPECT_LT(queue.allocated_bytes(), 100'000u) << "while something is still waiting";
  EXPECT_EQ(text_of(queue, queue.events().front()), large);
  for (std::uint64_t time = 3000; time < 100'000; ++time) insert(queue, plain(time), {});
  queue.pop(queue.size());
  queue.free_memory(256 << 10);
  EXPECT_EQ(queue.allocated_bytes(), 0u);
  const std::string again = "again";
  insert(queue, custom(1), bytes(again));
  EXPECT_EQ(text_of(queue, queue.events().front()), "again");
}

}  // namespace
}  // namespace rtev
