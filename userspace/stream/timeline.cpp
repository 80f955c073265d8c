// SPDX-License-Identifier: MIT
#include "stream/timeline.hpp"

#include <algorithm>
#include <limits>

namespace rtev {

/// The remaining events of one source in a release.
struct Head {
  std::uint64_t time;  ///< of the next event
  std::uint32_t source;
  Event* next;
  const Event* end;
  SourceQueue* queue;

  bool before(const Head& other) const { return time < other.time || (time == other.time && source < other.source); }
};

namespace {

/// Limit of a batch: its events are still in the cache when the sink reads them.
constexpr std::size_t batch_events = 4096;

/// That many successive events of one source are a batch in place; fewer are copied to a batch of several sources.
constexpr std::size_t run_events = 256;

/// A heap with the earliest head on top. The top can change in place, which it does for each event if sources
/// alternate. The heap moves pointers: a head would be copied with wide loads right after a narrow store to one of its
/// fields, and such loads wait until the store has reached the cache.
class MergeHeap {
 public:
  /// `max_heads`: limit of add() calls.
  explicit MergeHeap(std::size_t max_heads) { heads_.reserve(max_heads); }

  /// Call make() after the last add(), before anything else.
  void add(const Head& head) {
    heads_.push_back(head);
    heap_.push_back(&heads_.back());
  }
  void make() {
    for (std::size_t at = heap_.size() / 2; at-- > 0;) place(at, heap_[at]);
  }

  bool empty() const { return heap_.empty(); }
  Head& top() { return *heap_.front(); }
  /// The next after the top; null if there is none.
  const Head* second() const {
    if (heap_.size() < 2) return nullptr;
    return heap_.size() > 2 && heap_[2]->before(*heap_[1]) ? heap_[2] : heap_[1];
  }
  /// Restores the order after the time of the top changed.
  void settle() { place(0, heap_.front()); }
  void drop_top() {
    Head* const last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) place(0, last);
  }
  const std::vector<Head*>& all() const { return heap_; }

 private:
  /// Puts a head at a position, or below it in order.
  void place(std::size_t at, Head* head) {
    const std::size_t size = heap_.size();
    for (std::size_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && heap_[child + 1]->before(*heap_[child])) ++child;
      if (!heap_[child]->before(*head)) break;
      heap_[at] = heap_[child];
      at = child;
    }
    heap_[at] = head;
  }

  std::vector<Head> heads_;
  std::vector<Head*> heap_;
};

}  // namespace

SourceQueue& Timeline::queue(std::uint32_t source) {
  auto& slot = queues_[source];
  if (!slot) slot = std::make_unique<SourceQueue>(source);
  if (slot->empty()) active_.push_back(slot.get());
  return *slot;
}

/// The last reading of the clock if it is at least `at_least`, else a new one.
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
  if (is_full()) {
    watermark = std::numeric_limits<std::uint64_t>::max();
    ++forced_;
  }
  // Hosts have many domains, so the memory of a burst must be freed. But active sources should not allocate it again
  // each time: only those without events since the last release free it.
  for (SourceQueue* queue : idle_) {
    if (queue->empty()) queue->free_memory();
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
    // All events of this source before the first of the next source are handed out together.
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

/// A source's next events up to a time, in place.
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
  return {std::span(first, head.next), head.queue->payloads()};
}

/// Copies a source's next event to the outgoing batch, and further ones up to a time.
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
