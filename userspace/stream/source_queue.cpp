// SPDX-License-Identifier: MIT
#include "stream/source_queue.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace rtev {
namespace {

constexpr std::size_t min_capacity = 16;

}  // namespace

/// Moves the events to a new buffer.
void SourceQueue::set_capacity(std::size_t events) {
  auto memory = std::make_unique_for_overwrite<Event[]>(events);
  std::ranges::copy(wrapped_events(), std::ranges::copy(this->events(), memory.get()).out);
  memory_ = std::move(memory);
  capacity_ = events;
  front_ = 0;
}

void SourceQueue::make_room(std::size_t events) {
  drop_payloads();
  if (size_ + events > capacity_) set_capacity(std::bit_ceil(std::max(size_ + events, min_capacity)));
}

void SourceQueue::append(std::span<const Event> events, const Batch& batch) {
  make_room(events.size());
  const std::size_t place = (front_ + size_) & (capacity_ - 1);
  const auto first = events.first(std::min(events.size(), capacity_ - place));
  std::ranges::copy(first, memory_.get() + place);
  std::ranges::copy(events.subspan(first.size()), memory_.get());
  for (std::size_t index = 0; index < events.size(); ++index) {
    if (has_payload(events[index].kind)) [[unlikely]]
      at(size_ + index).value = store(batch.payload(events[index]));
  }
  size_ += events.size();
}

Event& SourceQueue::insert(std::uint64_t time_ns) {
  make_room(1);
  std::size_t index = size_++;
  for (; index > 0 && at(index - 1).time > time_ns; --index) at(index) = at(index - 1);
  return at(index);
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
  size_ -= count;
  popped_ += count;
  if (!empty()) {
    front_ = (front_ + count) & (capacity_ - 1);
    return;
  }
  // The same memory again: it is in the cache.
  front_ = popped_ = 0;
  payload_base_ += static_cast<std::uint32_t>(payloads_.size());
  payloads_.clear();
}

/// Drops the payloads of events that were removed.
void SourceQueue::drop_payloads() {
  // Only after at least as many events were removed as there are, so that the work is proportional to their number.
  if (popped_ < size_ || payloads_.empty()) return;
  popped_ = 0;
  // The first payload still needed can be of any event, because insert() changes the order.
  std::size_t unused = payloads_.size();
  for (const auto& part : {events(), wrapped_events()}) {
    for (const Event& event : part) {
      if (has_payload(event.kind))
        unused = std::min<std::size_t>(unused, static_cast<std::uint32_t>((event.value >> 32) - payload_base_));
    }
  }
  payloads_.erase(payloads_.begin(), payloads_.begin() + static_cast<std::ptrdiff_t>(unused));
  payload_base_ += static_cast<std::uint32_t>(unused);
}

void SourceQueue::trim(std::size_t kept_bytes) {
  if (allocated_bytes() <= kept_bytes) return;
  drop_payloads();
  if (bytes() >= allocated_bytes() / 16) return;
  set_capacity(std::bit_ceil(std::max(size_, min_capacity)));
  payloads_.shrink_to_fit();
}

void SourceQueue::free_memory(std::size_t kept_bytes) {
  if (allocated_bytes() <= kept_bytes) return;
  memory_.reset();
  capacity_ = 0;
  payloads_ = std::vector<std::byte>();
}

}  // namespace rtev
