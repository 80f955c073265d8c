// SPDX-License-Identifier: MIT
// A reader of a hostile ring, whose figures are checked after every poll.
#pragma once

#include <utility>

#include "fuzz/fuzzing.hpp"
#include "ring/reader_access.hpp"

namespace rtev::fuzz {

class WatchedReader {
 public:
  explicit WatchedReader(RingReader reader) : reader_(std::move(reader)) {}

  RingReader& operator*() { return reader_; }

  void poll(std::uint64_t budget) {
    const Accounting before = reader_.accounting();
    const std::uint64_t events = events_;
    const Polled polled = reader_.poll([this](const Batch& batch) { take(batch); }, budget);
    const Accounting now = reader_.accounting();
    check(now.balanced(), "accounting is balanced");
    check(polled.events == events_ - events, "events of a poll");
    // A sum over domains stays at 2^64 - 1.
    if (now.written == UINT64_MAX) return;
    check(polled.events == now.events - before.events, "events in the accounting");
    check(polled.delivered_words == now.delivered - before.delivered, "delivered words of a poll");
    check(polled.lost_words == now.lost - before.lost, "lost words of a poll");
    check(polled.corrupt_words == now.corrupt - before.corrupt, "corrupt words of a poll");
    check(losses_ <= now.lost + now.corrupt, "not more is reported as missing than is counted");
    check(polled.fullest >= 0 && polled.fullest <= 1, "fullest ring");
  }

  /// Reports the last losses: after this each missing word was reported.
  void finish() {
    reader_.finish([this](const Batch& batch) { take(batch); }, 7);
    const Accounting now = reader_.accounting();
    check(now.balanced(), "accounting is balanced at the end");
    if (now.written != UINT64_MAX) check(losses_ == now.lost + now.corrupt, "all losses are reported");
  }

 private:
  void take(const Batch& batch) {
    check(!batch.events().empty(), "a batch has events");
    for (const Event& event : batch.events()) {
      check(event.source == batch.events().front().source, "a batch is of one domain");
      if (event.kind == EventKind::lost) {
        const auto loss = batch.payload_as<Loss>(event);
        check(loss && loss->words > 0 && loss->from_ns <= loss->to_ns && loss->to_ns == event.time, "a loss");
        losses_ += loss->words;
        continue;
      }
      ++events_;
      for (const std::byte byte : batch.payload(event)) sum_ += std::to_integer<unsigned>(byte);
      sum_ += reader_.user_event_name(event.id).size();
    }
    check(sum_ != UINT64_MAX, "a use of what was read, so that the compiler keeps the reads");
  }

  RingReader reader_;
  std::uint64_t events_ = 0, losses_ = 0, sum_ = 0;
};

}  // namespace rtev::fuzz
