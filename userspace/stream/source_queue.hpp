// SPDX-License-Identifier: MIT
// The staged events of one source of a Timeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rtev/event.hpp"

namespace rtev {

/// A queue of events with their payloads. Payload references are offsets from the first payload that the queue ever
/// had, modulo 2^32, so that they need not change when the front is removed.
class SourceQueue {
 public:
  explicit SourceQueue(std::uint32_t source) : source_(source) {}

  std::uint32_t source() const { return source_; }
  bool empty() const { return front_ == events_.size(); }
  std::span<const Event> events() const { return std::span(events_).subspan(front_); }
  std::span<Event> events() { return std::span(events_).subspan(front_); }
  /// Of the events in the queue, and of those that were removed and whose place is not free yet. While a queue grows it
  /// has up to twice as many allocated.
  std::size_t bytes() const { return events_.size() * sizeof(Event) + payloads_.size(); }

  /// Appends events that are in order of time.
  void append(std::span<const Event> events, const Batch& batch);
  /// Inserts one event in order of time: near the end.
  void insert(Event event, std::span<const std::byte> payload);
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
  std::size_t allocated_bytes() const { return events_.capacity() * sizeof(Event) + payloads_.capacity(); }

 private:
  void compact();
  std::uint64_t store(std::span<const std::byte> payload);

  std::uint32_t source_;
  std::size_t front_ = 0;
  std::vector<Event> events_;
  std::uint32_t payload_base_ = 0;  ///< offset of payloads_.front()
  std::vector<std::byte> payloads_;
};

}  // namespace rtev
