// SPDX-License-Identifier: MIT
#include "stream/source_queue.hpp"

#include <algorithm>

namespace rtev {
void SourceQueue::append(std::span<const Event> events, const Batch& batch) {
  compact();
  const std::size_t begin = events_.size();
  events_.insert(events_.end(), events.begin(), events.end());
  for (Event& event : std::span(events_).subspan(begin)) {
    if (has_payload(event.kind)) [[unlikely]]
      event.value = store(batch.payload(event));
  }
}

void SourceQueue::insert(Event event, std::span<const std::byte> payload) {
  compact();
  if (has_payload(event.kind)) event.value = store(payload);
  auto place = events_.end();
  const auto first = events_.begin() + static_cast<std::ptrdiff_t>(front_);
  while (place != first && std::prev(place)->time > event.time) --place;
  events_.insert(place, event);
}

std::uint64_t SourceQueue::store(std::span<const std::byte> payload) {
  const auto offset = static_cast<std::uint32_t>(payload_base_ + payloads_.size());
  payloads_.insert(payloads_.end(), payload.begin(), payload.end());
  return Batch::payload_ref(offset, payload.size());
}

std::uint64_t SourceQueue::place_of_payload(const Event& event) const {
  return Batch::payload_ref(static_cast<std::uint32_t>((event.value >> 32) - payload_base_),
                            static_cast<std::uint32_t>(event.value));
}

std::span<const std::byte> SourceQueue::payload(const Event& event) const {
  const std::uint64_t place = place_of_payload(event);
  return payloads().subspan(place >> 32, static_cast<std::uint32_t>(place));
}

void SourceQueue::pop(std::size_t count) {
  front_ += count;
  if (empty()) {
    events_.clear();
    front_ = 0;
    payload_base_ += static_cast<std::uint32_t>(payloads_.size());
    payloads_.clear();
  }
}

/// Closes the gap at the front. pop() leaves the gap because mostly the rest of the queue is removed soon, too.
void SourceQueue::compact() {
  // Removes at least as many events as it moves, so that the work is proportional to the number of events.
  if (front_ == 0 || front_ < events_.size() / 2) return;
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(front_));
  front_ = 0;
  // The first payload still needed can be of any event, because insert() changes the order.
  std::size_t unused = payloads_.size();
  for (const Event& event : events_) {
    if (has_payload(event.kind))
      unused = std::min<std::size_t>(unused, static_cast<std::uint32_t>((event.value >> 32) - payload_base_));
  }
  payloads_.erase(payloads_.begin(), payloads_.begin() + static_cast<std::ptrdiff_t>(unused));
  payload_base_ += static_cast<std::uint32_t>(unused);
}

void SourceQueue::trim(std::size_t kept_bytes) {
  if (allocated_bytes() <= kept_bytes) return;
  compact();
  if (bytes() >= allocated_bytes() / 16) return;
  events_.shrink_to_fit();
  payloads_.shrink_to_fit();
}

void SourceQueue::free_memory(std::size_t kept_bytes) {
  if (allocated_bytes() <= kept_bytes) return;
  events_ = std::vector<Event>();
  payloads_ = std::vector<std::byte>();
}

}  // namespace rtev
