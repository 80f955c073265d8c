// SPDX-License-Identifier: MIT
// Merges many ordered sources into one stream in order of time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "rtev/event.hpp"
#include "stream/source_queue.hpp"

namespace rtev {

struct Head;

/// Stages events by source, and releases them in order of (time, source, arrival) when a watermark has passed them.
/// Sources without events delay nothing. Events that arrive after the watermark has passed their time are released
/// next, flagged late. Memory is bounded: beyond the bound all staged events are released. Not thread-safe.
class Timeline {
 public:
  static constexpr std::size_t default_staged_bytes = 256 << 20;

  /// `clock` gives the present in ns. Events with a later time (a program can write any) get the present as their time,
  /// because they would delay their source, and are flagged late.
  explicit Timeline(std::function<std::uint64_t()> clock, std::size_t max_staged_bytes = default_staged_bytes)
      : clock_(std::move(clock)), max_staged_bytes_(max_staged_bytes) {}

  /// Stages events of one source, in its order.
  void push(const Batch& batch);
  /// Stages one event of a source whose events are only nearly in order of time.
  void push(const Event& event, std::span<const std::byte> payload);
  /// Stages an event that carries a record.
  template <typename Record>
  void push(std::uint64_t time_ns, Source source, EventKind kind, std::uint16_t id, const Record& record) {
    push({.time = time_ns, .value = 0, .source = source.pack(), .id = id, .kind = kind, .flags = 0},
         std::as_bytes(std::span(&record, 1)));
  }

  /// Gives all events up to the watermark to the consumer, in batches of one or more sources. It must not call push().
  template <typename Consumer>
  void release(std::uint64_t watermark, Consumer&& consumer) {
    release_until(watermark, [&](const Batch& batch) { consumer(batch); });
  }

  bool empty() const { return active_.empty(); }
  /// True if more is staged than the bound allows: the next release() releases everything.
  bool is_full() const { return staged_bytes() > max_staged_bytes_; }
  /// Allocated bytes, used or not.
  std::size_t allocated_bytes() const;
  /// Bytes of staged events and payloads.
  std::size_t staged_bytes() const;
  /// Removes the empty queues of a ring file.
  void forget(std::uint32_t slot, std::uint32_t domains);

  std::uint64_t late() const { return late_; }
  std::uint64_t forced() const { return forced_; }

 private:
  SourceQueue& queue(std::uint32_t source);
  std::uint64_t present(std::uint64_t at_least);
  void release_until(std::uint64_t watermark, const std::function<void(const Batch&)>& consumer);
  static bool is_run(const Head& head, std::uint64_t latest);
  Batch take_run(Head& head, std::uint64_t latest);
  void emit(Head& head, std::uint64_t latest);

  std::function<std::uint64_t()> clock_;
  std::size_t max_staged_bytes_;
  std::uint64_t present_ = 0;  ///< newest reading of the clock
  std::unordered_map<std::uint32_t, std::unique_ptr<SourceQueue>> queues_;
  std::vector<SourceQueue*> active_;  ///< those with events
  std::vector<SourceQueue*> idle_;    ///< those that the last release emptied
  std::vector<Event> out_;
  std::vector<std::byte> out_payloads_;
  std::uint64_t last_time_ = 0;  ///< newest time handed out
  std::uint64_t late_ = 0;
  std::uint64_t forced_ = 0;
};

}  // namespace rtev
