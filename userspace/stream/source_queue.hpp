// SPDX-License-Identifier: MIT
// The staged events of one source of a Timeline.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rtev/event.hpp"

namespace rtev {

/// A queue of events with their payloads. The events are in a circular buffer: they are never moved to make room, and
/// it is little larger than what it held at most. Payload references are offsets from the first payload that the queue
/// ever had, modulo 2^32, so that they need not change when the front is removed.
class SourceQueue {
 public:
  explicit SourceQueue(std::uint32_t source) : source_(source) {}

  std::uint32_t source() const { return source_; }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  /// The first events: all, or those up to the end of the buffer.
  std::span<Event> events() { return {memory_.get() + front_, std::min(size_, capacity_ - front_)}; }
  /// Those that follow them.
  std::span<Event> wrapped_events() { return {memory_.get(), size_ - events().size()}; }
  /// Of the events in the queue, and of payloads that were removed and whose place is not free yet. While a queue grows
  /// it has up to twice as many allocated.
  std::size_t bytes() const { return size_ * sizeof(Event) + payloads_.size(); }

  /// Appends events that are in order of time.
  void append(std::span<const Event> events, const Batch& batch);
  /// Makes a place for one event in order of time: near the end. The caller fills it in.
  Event& insert(std::uint64_t time_ns);
  /// Stores the payload of the event that was inserted last. Returns the event's value.
  std::uint64_t store(std::span<const std::byte> payload);
  /// Payload of an event that is in the queue.
  std::span<const std::byte> payload(const Event& event) const;
  /// The payloads of all events, and the value that an event has in a Batch with them.
  std::span<const std::byte> payloads() const { return payloads_; }
  std::uint64_t place_of_payload(const Event& event) const;
  /// Removes the first `count` events.
  void pop(std::size_t count);
  /// Frees the buffers of an empty queue if they are larger than this.
  void free_memory(std::size_t kept_bytes);
  /// Frees what is allocated and not used, if that is most of it and more than this in all.
  void trim(std::size_t kept_bytes);
  /// Allocated bytes, used or not.
  std::size_t allocated_bytes() const { return capacity_ * sizeof(Event) + payloads_.capacity(); }

 private:
  Event& at(std::size_t index) { return memory_[(front_ + index) & (capacity_ - 1)]; }
  void set_capacity(std::size_t events);
  void make_room(std::size_t events);
  void drop_payloads();

  std::uint32_t source_;
  std::unique_ptr<Event[]> memory_;
  std::size_t capacity_ = 0;  ///< a power of two, or 0
  std::size_t front_ = 0;     ///< place of the first event
  std::size_t size_ = 0;
  std::size_t popped_ = 0;          ///< events since payloads were dropped
  std::uint32_t payload_base_ = 0;  ///< offset of payloads_.front()
  std::vector<std::byte> payloads_;
};

}  // namespace rtev
