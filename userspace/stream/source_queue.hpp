// SPDX-License-Identifier: MIT
// Events of one source that wait for their turn in the timeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rtev/event.hpp"

namespace rtev {

/// A queue of events with their payloads. Payload references are kept as offsets from the birth of the queue, modulo
/// 2^32, so that nothing has to be rewritten when the front is taken away.
class SourceQueue {
 public:
  explicit SourceQueue(std::uint32_t source) : source_(source) {}

  std::uint32_t source() const { return source_; }
  bool empty() const { return front_ == events_.size(); }
  std::span<const Event> events() const { return std::span(events_).subspan(front_); }
  std::span<Event> events() { return std::span(events_).subspan(front_); }
  std::size_t bytes() const { return events().size_bytes() + payloads_.size(); }

  /// Appends events that are in order of time.
  void append(std::span<const Event> events, const Batch& batch);
  /// Inserts one event into its place, which is near the end.
  void insert(Event event, std::span<const std::byte> payload);
  /// Payload of an event that is in the queue.
  std::span<const std::byte> payload(const Event& event) const;
  /// The payloads of all events, and where that of an event lies among them: the value it has in a Batch of both.
  std::span<const std::byte> payloads() const { return payloads_; }
  std::uint64_t place_of_payload(const Event& event) const;
  /// Takes the first `count` events away.
  void pop(std::size_t count);
  /// Frees the buffers of an empty queue if they are large.
  void give_back_memory();
  /// Bytes held, used or not.
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
