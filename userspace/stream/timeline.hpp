// SPDX-License-Identifier: MIT
// The merge: many ordered sources in, one stream in order of time out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rtev/event.hpp"
#include "stream/source_queue.hpp"

namespace rtev {

struct Head;

/// Stages events by source and lets them out in (time, source, order of arrival) once a watermark has passed them.
/// A silent source holds nothing back. An event that comes after the watermark has passed its time goes out with the
/// next release, flagged late. Memory is bounded: beyond the bound everything staged goes out at once. One thread.
class Timeline {
 public:
  static constexpr std::size_t default_staged_bytes = 256 << 20;

  /// `clock` gives the present in ns: no event can be younger. One that claims to be (its program made it up) gets the
  /// present as its time, or it would hold back its source for ever; it is flagged late.
  explicit Timeline(std::function<std::uint64_t()> clock, std::size_t max_staged_bytes = default_staged_bytes)
      : clock_(std::move(clock)), max_staged_bytes_(max_staged_bytes) {}

  /// Stages events of one source, in its order.
  void push(const Batch& batch);
  /// Stages one event of a source whose order is only nearly that of time.
  void push(const Event& event, std::span<const std::byte> payload);

  /// Hands out all events up to the watermark, as batches of one source or several. The consumer must not push().
  template <typename Consumer>
  void release(std::uint64_t watermark, Consumer&& consumer) {
    release_until(watermark, [&](const Batch& batch) { consumer(batch); });
  }

  bool empty() const { return active_.empty(); }
  /// Bytes held for staging, used or not.
  std::size_t allocated_bytes() const;
  /// Bytes of staged events and payloads.
  std::size_t staged_bytes() const;
  /// Forgets the (empty) queues of a ring file that is gone.
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
