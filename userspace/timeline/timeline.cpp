// SPDX-License-Identifier: MIT
#include "timeline/timeline.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace rtev {
namespace {

/// Events handed out at a time; they are still in the cache when the sink reads them.
constexpr std::size_t batch_events = 4096;

struct Head {
  std::uint64_t time;
  std::uint32_t source;
  SourceQueue* queue;
};

/// For std::push_heap and its kin, which keep the greatest on top.
bool comes_later(const Head& a, const Head& b) {
  return std::tie(a.time, a.source) > std::tie(b.time, b.source);
}

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
  if (staged_bytes() > most_staged_bytes_) {
    watermark = std::numeric_limits<std::uint64_t>::max();
    ++forced_;
  }
  // A burst must not hold its memory for ever, for hosts have many domains; but a source that goes on shall not wait
  // for new pages each time. So those give back what they hold that are silent since the last release.
  for (SourceQueue* queue : idle_) {
    if (queue->empty()) queue->give_back_memory();
  }
  idle_.clear();

  std::vector<Head> heap;
  for (SourceQueue* queue : active_) {
    const std::uint64_t time = queue->events().front().time;
    if (time <= watermark) heap.push_back({time, queue->source(), queue});
  }
  std::ranges::make_heap(heap, comes_later);

  const auto hand_out = [&] {
    if (!out_.empty()) consumer(Batch(out_, out_payloads_));
    out_.clear();
    out_payloads_.clear();
  };
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, comes_later);
    const Head head = heap.back();
    heap.pop_back();

    // All that this source has before the next source's turn goes out in one piece.
    const Head limit =
        heap.empty() ? Head{watermark, std::numeric_limits<std::uint32_t>::max(), nullptr} : heap.front();
    const auto events = head.queue->events().first(std::min(head.queue->events().size(), batch_events - out_.size()));
    std::size_t count = 1;
    while (count < events.size() && events[count].time <= watermark &&
           std::tie(events[count].time, head.source) <= std::tie(limit.time, limit.source))
      ++count;
    emit(*head.queue, count);
    head.queue->pop(count);
    if (out_.size() == batch_events) hand_out();
    if (head.queue->empty()) continue;
    const std::uint64_t next = head.queue->events().front().time;
    if (next > watermark) continue;
    heap.push_back({next, head.source, head.queue});
    std::ranges::push_heap(heap, comes_later);
  }
  hand_out();

  std::erase_if(active_, [&](SourceQueue* queue) {
    if (!queue->empty()) return false;
    idle_.push_back(queue);
    return true;
  });
}

/// Copies the first events of a queue to the outgoing batch.
void Timeline::emit(const SourceQueue& queue, std::size_t count) {
  const std::size_t begin = out_.size();
  const auto events = queue.events().first(count);
  out_.insert(out_.end(), events.begin(), events.end());
  std::uint64_t last_time = last_time_, late = 0;
  for (Event& event : std::span(out_).subspan(begin)) {
    if (event.time < last_time) [[unlikely]]
      event.flags |= flag_late;
    last_time = std::max(last_time, event.time);
    late += event.flags & flag_late;
    if (has_payload(event.kind)) [[unlikely]] {
      const auto payload = queue.payload(event);
      event.value = Batch::payload_ref(out_payloads_.size(), payload.size());
      out_payloads_.insert(out_payloads_.end(), payload.begin(), payload.end());
    }
  }
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
