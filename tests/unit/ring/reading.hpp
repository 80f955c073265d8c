// SPDX-License-Identifier: MIT
// What tests of RingReader share: a reader whose every poll is checked for exact accounting, and which keeps what came.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rtev/ring_reader.hpp"

namespace rtev::test {

struct Seen {
  Event event;
  std::string payload;

  Loss loss() const {
    Loss result{};
    if (payload.size() == sizeof result) std::memcpy(&result, payload.data(), sizeof result);
    return result;
  }
  std::uint16_t domain() const { return Source::unpack(event.source).domain; }
};

class CheckedReader {
 public:
  explicit CheckedReader(RingReader reader) : reader_(std::move(reader)) { check(); }
  explicit CheckedReader(const std::filesystem::path& path, const RingReader::Options& options = {})
      : CheckedReader(opened(path, options)) {}

  /// One poll; its events are added to seen().
  Polled poll(std::uint64_t budget = RingReader::default_budget_words) {
    const Accounting before = reader_.accounting();
    const std::uint64_t events_before = events_;
    const Polled polled = reader_.poll([this](const Batch& batch) { take(batch); }, budget);
    check(before, polled, events_ - events_before);
    return polled;
  }
  Polled poll_domain(std::uint16_t domain, std::uint64_t budget = RingReader::default_budget_words) {
    const Accounting before = reader_.accounting();
    const std::uint64_t events_before = events_;
    const Polled polled = reader_.poll_domain(domain, [this](const Batch& batch) { take(batch); }, budget);
    check(before, polled, events_ - events_before);
    return polled;
  }
  void finish(std::uint64_t now_ns) {
    reader_.finish([this](const Batch& batch) { take(batch); }, now_ns);
    check();
  }

  RingReader& reader() { return reader_; }
  std::vector<Seen>& seen() { return seen_; }
  /// What came since the last call.
  std::vector<Seen> take_seen() { return std::exchange(seen_, {}); }
  /// The same, times only, without losses.
  std::vector<std::uint64_t> take_times() {
    std::vector<std::uint64_t> times;
    for (const Seen& each : take_seen()) {
      if (each.event.kind != EventKind::lost) times.push_back(each.event.time);
    }
    return times;
  }
  Accounting words() const { return reader_.accounting(); }

 private:
  static constexpr std::uint16_t most_domains = 16;  ///< no test has more

  static RingReader opened(const std::filesystem::path& path, const RingReader::Options& options) {
    auto reader = RingReader::open(path, options);
    if (!reader) throw std::runtime_error(reader.error().message());
    return std::move(*reader);
  }

  void take(const Batch& batch) {
    ASSERT_FALSE(batch.events().empty());
    for (const Event& event : batch.events()) {
      EXPECT_EQ(event.source, batch.events().front().source) << "a batch is of one domain";
      EXPECT_EQ(event.flags, 0);
      const auto payload = batch.payload(event);
      seen_.push_back({event, {reinterpret_cast<const char*>(payload.data()), payload.size()}});
      if (event.kind == EventKind::lost) {
        const Loss loss = seen_.back().loss();
        EXPECT_GT(loss.words, 0u);
        EXPECT_LE(loss.from_ns, loss.to_ns);
        EXPECT_EQ(loss.to_ns, event.time);
        (static_cast<LossReason>(event.id) == LossReason::corrupt ? corrupt_told_ : lost_told_) += loss.words;
      } else {
        ++events_;
      }
    }
  }

  void check(const Accounting& before, const Polled& polled, std::uint64_t events) {
    const Accounting now = reader_.accounting();
    EXPECT_EQ(polled.delivered_words, now.delivered - before.delivered);
    EXPECT_EQ(polled.lost_words, now.lost - before.lost);
    EXPECT_EQ(polled.events, now.events - before.events);
    EXPECT_EQ(polled.events, events);
    EXPECT_GE(polled.fullest, 0);
    EXPECT_LE(polled.fullest, 1);
    if (polled.complete) {
      EXPECT_EQ(reader_.behind_since_ns().has_value(), now.unread != 0);
    }
    check();
  }

  void check() {
    Accounting sum;
    for (std::uint16_t domain = 0; domain < most_domains; ++domain) {
      const Accounting words = reader_.accounting(domain);
      EXPECT_TRUE(words.balanced()) << "domain " << domain;
      // Words that were written over cannot be more than were written: nothing wrapped below zero.
      EXPECT_LE(words.unread, words.written);
      EXPECT_LE(words.delivered, words.written);
      sum += words;
    }
    EXPECT_TRUE(sum.balanced());
    EXPECT_EQ(sum.written, reader_.accounting().written);
    // Events tell of losses late, never of too much.
    EXPECT_LE(lost_told_, sum.lost);
    EXPECT_LE(corrupt_told_, sum.corrupt);
  }

  RingReader reader_;
  std::vector<Seen> seen_;
  std::uint64_t events_ = 0;
  std::uint64_t lost_told_ = 0;
  std::uint64_t corrupt_told_ = 0;
};

}  // namespace rtev::test
