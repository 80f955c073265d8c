// SPDX-License-Identifier: MIT
#include "stream/timeline.hpp"

#include <algorithm>
#include <limits>
#include <utility>

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

/// What a queue keeps allocated without need at most, and how many queues there may be before empty ones go.
constexpr std::size_t max_kept_bytes = std::size_t{256} << 10, min_kept_by_active = 4096,
                      max_queues = std::size_t{1} << 16;

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

Timeline::Staged& Timeline::staged(std::uint32_t source) {
  auto found = queues_.find(source);
  if (found == queues_.end()) {
    std::size_t& owned_bytes = owned_bytes_[owner(source)];
    found = queues_.try_emplace(source, Staged{.queue = SourceQueue(source), .owned_bytes = &owned_bytes}).first;
  }
  if (found->second.queue.empty()) active_.push_back(&found->second);
  return found->second;
}

/// After each change of a queue.
void Timeline::charge(Staged& staged) {
  const std::size_t bytes = staged.queue.bytes(), change = bytes - std::exchange(staged.charged_bytes, bytes);
  staged_bytes_ += change;
  *staged.owned_bytes += change;
}

/// The last reading of the clock if it is at least `at_least`, else a new one.
std::uint64_t Timeline::present(std::uint64_t at_least) {
  if (present_ < at_least) present_ = clock_();
  return present_;
}

void Timeline::correct_time(Event& event) {
  const std::uint64_t now = present(event.time);
  if (event.time <= now) return;
  event.time = now;
  event.flags |= flag_late;
}

void Timeline::push(const Batch& batch) {
  const auto events = batch.events();
  if (events.empty()) return;
  std::uint64_t newest = 0;
  for (const Event& event : events) newest = std::max(newest, event.time);
  if (newest <= present(newest)) [[likely]] {
    Staged& of_source = staged(events.front().source);
    of_source.queue.append(events, batch);
    charge(of_source);
    return;
  }
  std::vector<Event> corrected(events.begin(), events.end());
  for (Event& event : corrected) correct_time(event);
  Staged& of_source = staged(events.front().source);
  of_source.queue.append(corrected, batch);
  charge(of_source);
}

void Timeline::push(Event event, std::span<const std::byte> payload) {
  correct_time(event);
  Staged& of_source = staged(event.source);
  of_source.queue.insert(event, payload);
  charge(of_source);
}

std::uint64_t Timeline::release_until(std::uint64_t watermark, const std::function<void(const Batch&)>& consumer,
                                      std::uint64_t deadline_ns) {
  constexpr auto all = std::numeric_limits<std::uint64_t>::max();
  if (watermark != all && is_full()) {
    watermark = all;
    ++forced_;
  }
  free_unused();

  MergeHeap heap(active_.size());
  for (Staged* of_source : active_) {
    const std::span<Event> events = of_source->queue.events();
    if (events.front().time > watermark) continue;
    heap.add({.time = events.front().time,
              .source = of_source->queue.source(),
              .next = events.data(),
              .end = events.data() + events.size(),
              .queue = &of_source->queue});
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
  bool is_late = false;
  const auto check_time = [&] { is_late = deadline_ns != no_deadline && clock_() >= deadline_ns; };
  while (!heap.empty() && !is_late) {
    Head& head = heap.top();
    // All events of this source before the first of the next source are handed out together.
    std::uint64_t latest = watermark;
    if (const Head* second = heap.second()) latest = head.source < second->source ? second->time : second->time - 1;
    if (is_run(head, latest)) {
      hand_out();
      consumer(take_run(head, latest));
      check_time();
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
    if (out_.size() >= batch_events) {
      hand_out();
      check_time();
    }
  }
  // Other events of the same time may be left.
  const std::uint64_t released_until = heap.empty() ? watermark : std::max<std::uint64_t>(heap.top().time, 1) - 1;
  hand_out();

  std::erase_if(active_, [&](Staged* of_source) {
    charge(*of_source);
    if (!of_source->queue.empty()) return false;
    idle_.push_back(of_source);
    return true;
  });
  return released_until;
}

/// Hosts have many domains, so the memory of a burst must be freed: all queues together keep a part of what may be
/// staged, however many there are. But active sources should not allocate it again each time: those keep more, and an
/// empty queue frees its memory only if it had no event since the last release.
void Timeline::free_unused() {
  const std::size_t share = max_bytes_ / (queues_.size() + 1);
  const std::size_t kept_bytes = std::min(max_kept_bytes, share / 16);
  const std::size_t kept_by_active = std::clamp(share / 2, min_kept_by_active, max_kept_bytes);
  for (Staged* of_source : active_) {
    of_source->queue.trim(kept_by_active);
    charge(*of_source);
  }
  for (Staged* of_source : idle_) {
    if (!of_source->queue.empty()) continue;
    of_source->queue.free_memory(kept_bytes);
    if (queues_.size() > max_queues) queues_.erase(of_source->queue.source());
  }
  idle_.clear();
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

std::size_t Timeline::staged_events() const {
  std::size_t events = 0;
  for (const Staged* of_source : active_) events += of_source->queue.events().size();
  return events;
}

std::size_t Timeline::allocated_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [source, of_source] : queues_) bytes += of_source.queue.allocated_bytes();
  return bytes;
}

void Timeline::forget(std::uint32_t slot, std::uint32_t domains) {
  owners_.erase(slot);
  std::erase_if(idle_,
                [slot](const Staged* of_source) { return Source::unpack(of_source->queue.source()).slot == slot; });
  for (std::uint32_t domain = 0; domain < domains; ++domain) {
    const auto found = queues_.find(Source{slot, static_cast<std::uint16_t>(domain)}.pack());
    if (found == queues_.end() || !found->second.queue.empty()) continue;
    queues_.erase(found);
  }
}

}  // namespace rtev
