// SPDX-License-Identifier: MIT
#include "stream/timeline.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace rtev {
namespace {

/// Limit of a batch: its events are still in the cache when the sink reads them.
constexpr std::size_t batch_events = 4096;

/// So many events are merged between two looks for runs.
constexpr std::size_t merged_events = 64;

/// That many successive events of one source are a batch in place; fewer are copied to a batch of several sources.
constexpr std::ptrdiff_t least_batch_events = 256;

/// What a queue keeps allocated without need at most, and how many queues there may be before empty ones go.
constexpr std::size_t max_kept_bytes = std::size_t{256} << 10, min_kept_by_active = 4096,
                      max_queues = std::size_t{1} << 16;

}  // namespace

/// Lets the source play with its next event, unless that is later than the watermark.
inline void Timeline::Head::advance(MergeTree::Player& player, std::uint64_t watermark) {
  if (next == end && !rest.empty()) [[unlikely]] {
    before += static_cast<std::size_t>(end - begin);
    begin = next = rest.data();
    end = begin + rest.size();
    rest = {};
  }
  if (next != end && next->time <= watermark) [[likely]]
    player.go_to(next);
  else
    player.leave();
}

/// Removes what was taken from the queue.
void Timeline::Head::pop() {
  queue->pop(std::exchange(before, 0) + static_cast<std::size_t>(next - begin));
  begin = next;
}

Timeline::Timeline(std::function<std::uint64_t()> clock, std::size_t max_bytes)
    : clock_(std::move(clock)), max_bytes_(max_bytes), out_(std::make_unique_for_overwrite<Event[]>(batch_events)) {}

Timeline::Staged& Timeline::staged(std::uint32_t source) {
  Staged* known = recent_.find(queues_, source);
  if (known == nullptr) {
    std::size_t& owned_bytes = owned_bytes_[owner(source)];
    known =
        &queues_.try_emplace(source, Staged{.queue = SourceQueue(source), .owned_bytes = &owned_bytes}).first->second;
  }
  if (known->queue.empty()) active_.push_back(known);
  return *known;
}

/// After each change of a queue.
void Timeline::charge(Staged& staged) {
  const std::size_t bytes = staged.queue.bytes(), change = bytes - std::exchange(staged.charged_bytes, bytes);
  staged_bytes_ += change;
  *staged.owned_bytes += change;
}

/// The last reading of the clock if it is at least `at_least`, else a new one.
std::uint64_t Timeline::present(std::uint64_t at_least) {
  // MergeTree needs a later time than that of any event.
  if (present_ < at_least) present_ = std::min(clock_(), std::numeric_limits<std::uint64_t>::max() - 1);
  return present_;
}

/// The time, or the present and a flag if that is earlier.
std::uint64_t Timeline::correct_time(std::uint64_t time_ns, std::uint8_t& flags) {
  const std::uint64_t now = present(time_ns);
  if (time_ns > now) flags |= flag_late;
  return std::min(time_ns, now);
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
  for (Event& event : corrected) event.time = correct_time(event.time, event.flags);
  Staged& of_source = staged(events.front().source);
  of_source.queue.append(corrected, batch);
  charge(of_source);
}

/// Takes the members of an event, and not an Event: to copy one that was just made of its members takes long. The
/// processor cannot forward several small stores to one wide load, and waits until they have reached the cache.
void Timeline::insert(std::uint64_t time_ns, std::uint32_t source, EventKind kind, std::uint16_t id, std::uint8_t flags,
                      std::uint64_t value, std::span<const std::byte> payload) {
  const std::uint64_t time = correct_time(time_ns, flags);
  Staged& of_source = staged(source);
  Event& event = of_source.queue.insert(time);
  event.time = time;
  event.value = has_payload(kind) ? of_source.queue.store(payload) : value;
  event.source = source;
  event.id = id;
  event.kind = kind;
  event.flags = flags;
  charge(of_source);
}

std::uint64_t Timeline::deliver_until(std::uint64_t watermark, const std::function<void(const Batch&)>& consumer,
                                      std::uint64_t deadline_ns) {
  constexpr auto all = std::numeric_limits<std::uint64_t>::max();
  if (watermark != all && is_full()) {
    watermark = all;
    ++forced_;
  }
  free_unused();

  heads_.clear();
  tree_.clear();
  for (Staged* of_source : active_) {
    const std::span<Event> events = of_source->queue.events();
    if (events.front().time > watermark) continue;
    tree_.add(of_source->queue.source(), events.data());
    heads_.push_back({.queue = &of_source->queue,
                      .begin = events.data(),
                      .next = events.data(),
                      .end = events.data() + events.size(),
                      .rest = of_source->queue.wrapped_events()});
  }
  tree_.start();

  const auto hand_out = [&] {
    for (Head& head : heads_) head.pop();
    if (out_count_ > 0) consumer(Batch({out_.get(), out_count_}, out_payloads_));
    out_count_ = 0;
    out_payloads_.clear();
  };
  bool is_late = false;
  const auto check_time = [&] { is_late = deadline_ns != no_deadline && clock_() >= deadline_ns; };
  while (!tree_.winner().is_out() && !is_late) {
    const std::uint64_t latest = std::min(watermark, latest_of_winner());
    if (has_batch(latest)) {
      hand_out();
      consumer(take_batch(latest, watermark));
      check_time();
    } else {
      merge(watermark);
      if (out_count_ < batch_events) continue;
      hand_out();
      check_time();
    }
  }
  // Other events of the same time may be left.
  const std::uint64_t delivered_until =
      tree_.winner().is_out() ? watermark : std::max<std::uint64_t>(tree_.winner().time, 1) - 1;
  hand_out();

  std::erase_if(active_, [&](Staged* of_source) {
    charge(*of_source);
    if (!of_source->queue.empty()) return false;
    idle_.push_back(of_source);
    return true;
  });
  return delivered_until;
}

/// Hosts have many domains, so the memory of a burst must be freed: all queues together keep a part of what may be
/// staged, however many there are. But active sources should not allocate it again each time: those keep more, and an
/// empty queue frees its memory only if it had no event since the last delivery.
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
    if (queues_.size() > max_queues) erase(of_source->queue.source());
  }
  idle_.clear();
}

void Timeline::erase(std::uint32_t source) {
  recent_.forget(source);
  queues_.erase(source);
}

/// Until when events of the earliest source come before those of all others.
std::uint64_t Timeline::latest_of_winner() const {
  const MergeTree::Player &first = tree_.winner(), second = tree_.second();
  return first.order < second.order ? second.time : second.time - 1;
}

/// True if many events of the earliest source come before this time.
bool Timeline::has_batch(std::uint64_t latest) const {
  const Head& head = heads_[tree_.winner().index()];
  return head.end - head.next >= least_batch_events && head.next[least_batch_events - 1].time <= latest;
}

/// The next events of the earliest source up to a time, in place.
Batch Timeline::take_batch(std::uint64_t latest, std::uint64_t watermark) {
  Head& head = heads_[tree_.winner().index()];
  Event* const first = head.next;
  Event* const most = first + std::min<std::ptrdiff_t>(head.end - first, batch_events);
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
  const std::span run(first, head.next);
  tree_.run(1, [&](MergeTree::Player& player) { head.advance(player, watermark); });
  return {run, head.queue->payloads()};
}

/// Copies the next events of all sources to the outgoing batch.
void Timeline::merge(std::uint64_t watermark) {
  Event* out = out_.get() + out_count_;
  std::uint64_t last_time = last_time_, late = 0;
  Head* const heads = heads_.data();
  tree_.run(std::min(merged_events, batch_events - out_count_), [&](MergeTree::Player& player) {
    Head& head = heads[player.index()];
    *out = *player.next;
    if (player.time < last_time) [[unlikely]]
      out->flags |= flag_late;
    last_time = std::max(last_time, player.time);
    late += out->flags & flag_late;
    if (has_payload(out->kind)) [[unlikely]]
      out->value = copy_payload(head.queue->payload(*out));
    ++out;
    head.next = player.next + 1;
    head.advance(player, watermark);
  });
  out_count_ = static_cast<std::size_t>(out - out_.get());
  last_time_ = last_time;
  late_ += late;
}

/// To the outgoing batch; returns its place there.
std::uint64_t Timeline::copy_payload(std::span<const std::byte> payload) {
  const std::size_t offset = out_payloads_.size();
  out_payloads_.insert(out_payloads_.end(), payload.begin(), payload.end());
  return Batch::payload_ref(offset, payload.size());
}

std::size_t Timeline::staged_events() const {
  std::size_t events = 0;
  for (const Staged* of_source : active_) events += of_source->queue.size();
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
    erase(found->first);
  }
}

}  // namespace rtev
