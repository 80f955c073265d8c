// SPDX-License-Identifier: MIT
#include "stream/timeline.hpp"

#include <algorithm>
#include <limits>

#include "stream/merge_heap.hpp"

namespace rtev {
namespace {

/// Events handed out at a time; they are still in the cache when the sink reads them.
constexpr std::size_t batch_events = 4096;

/// So many of one source that follow each other are not copied to a batch of several sources, but are one.
constexpr std::size_t run_events = 256;

}  // namespace

SourceQueue& Timeline::queue(std::uint32_t source) {
  auto& slot = queues_[source];
  if (!slot) slot = std::make_unique<SourceQueue>(source);
  if (slot->empty()) active_.push_back(slot.get());
  return *slot;
}

/// The clock, read only when the last reading is not late enough to decide.
std::uint64_t Timeline::present(std::uint64_t at_least) {
  if (present_ < at_least) present_ = clock_();
  return present_;
}

void Timeline::push(const Batch& batch) {
  const auto events = batch.events();
  if (events.empty()) return;
  std::uint64_t newest = 0;
  for (const Event& event : events) newest = std::max(newest, event.time);
  if (newest <= present(newest)) [[likely]] {
    queue(events.front().source).append(events, batch);
    return;
  }
  std::vector<Event> corrected(events.begin(), events.end());
  for (Event& event : corrected) {
    if (event.time <= present_) continue;
    event.time = present_;
    event.flags |= flag_late;
  }
  queue(events.front().source).append(corrected, batch);
}

void Timeline::push(const Event& event, std::span<const std::byte> payload) {
  queue(event.source).insert(event, payload);
}

void Timeline::release_until(std::uint64_t watermark, const std::function<void(const Batch&)>& consumer) {
  if (staged_bytes() > max_staged_bytes_) {
    watermark = std::numeric_limits<std::uint64_t>::max();
    ++forced_;
  }
  // Hosts have many domains, so the memory of a burst must be freed; but an active source should not have to allocate
  // it again each time. So sources that had no events since the last release free theirs.
  for (SourceQueue* queue : idle_) {
    if (queue->empty()) queue->give_back_memory();
  }
  idle_.clear();

  MergeHeap heap(active_.size());
  for (SourceQueue* queue : active_) {
    const std::span<Event> events = queue->events();
    if (events.front().time > watermark) continue;
    heap.add({.time = events.front().time,
              .source = queue->source(),
              .next = events.data(),
              .end = events.data() + events.size(),
              .queue = queue});
  }
  heap.make();

  const auto take_away = [](const Head& head) {
    head.queue->pop(static_cast<std::size_t>(head.next - head.queue->events().data()));
  };
  const auto hand_out = [&] {
    for (const Head* head : heap.all()) take_away(*head);
    if (!out_.empty()) consumer(Batch(out_, out_payloads_));
    out_.clear();
    out_payloads_.clear();
  };
  while (!heap.empty()) {
    Head& head = heap.top();
    // All that this source has before the next source's turn goes out in one piece.
    std::uint64_t latest = watermark;
    if (const Head* second = heap.second()) latest = head.source < second->source ? second->time : second->time - 1;
    if (is_run(head, latest)) {
      hand_out();
      consumer(take_run(head, latest));
    } else {
      emit(head, latest);
    }
    if (head.next == head.end || head.next->time > watermark) {
      take_away(head);
      heap.drop_top();
    } else {
      head.time = head.next->time;
      heap.settle();
    }
    if (out_.size() >= batch_events) hand_out();
  }
  hand_out();

  std::erase_if(active_, [&](SourceQueue* queue) {
    if (!queue->empty()) return false;
    idle_.push_back(queue);
    return true;
  });
}

bool Timeline::is_run(const Head& head, std::uint64_t latest) {
  return static_cast<std::size_t>(head.end - head.next) >= run_events && head.next[run_events - 1].time <= latest;
}

/// A source's next events up to a time, where they lie.
Batch Timeline::take_run(Head& head, std::uint64_t latest) {
  Event* const first = head.next;
  Event* const most = first + std::min(static_cast<std::size_t>(head.end - first), batch_events);
  std::uint64_t last_time = last_time_, late = 0;
  for (; head.next != most && head.next->time <= latest; ++head.next) {
    Event& event = *head.next;
    if (event.time < last_time) [[unlikely]]
      event.flags |= flag_late;
    last_time = std::max(last_time, event.time);
    late += event.flags & flag_late;
    if (has_payload(event.kind)) [[unlikely]]
      event.value = head.queue->place_of_payload(event);
  }
  last_time_ = last_time;
  late_ += late;
  return Batch(std::span(first, head.next), head.queue->payloads());
}

/// Copies a source's next event to the outgoing batch, and what follows it up to a time.
void Timeline::emit(Head& head, std::uint64_t latest) {
  std::uint64_t last_time = last_time_, late = 0;
  do {
    Event event = *head.next++;
    if (event.time < last_time) [[unlikely]]
      event.flags |= flag_late;
    last_time = std::max(last_time, event.time);
    late += event.flags & flag_late;
    if (has_payload(event.kind)) [[unlikely]] {
      const auto payload = head.queue->payload(event);
      event.value = Batch::payload_ref(out_payloads_.size(), payload.size());
      out_payloads_.insert(out_payloads_.end(), payload.begin(), payload.end());
    }
    out_.push_back(event);
  } while (head.next != head.end && head.next->time <= latest && out_.size() < batch_events);
  last_time_ = last_time;
  late_ += late;
}

std::size_t Timeline::staged_bytes() const {
  std::size_t bytes = 0;
  for (const SourceQueue* queue : active_) bytes += queue->bytes();
  return bytes;
}

std::size_t Timeline::allocated_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [source, queue] : queues_) bytes += queue->allocated_bytes();
  return bytes;
}

void Timeline::forget(std::uint32_t slot, std::uint32_t domains) {
  for (std::uint32_t domain = 0; domain < domains; ++domain) {
    const auto found = queues_.find(Source{slot, static_cast<std::uint16_t>(domain)}.pack());
    if (found == queues_.end() || !found->second->empty()) continue;
    std::erase(idle_, found->second.get());
    queues_.erase(found);
  }
}

}  // namespace rtev
