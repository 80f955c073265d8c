// SPDX-License-Identifier: MIT
// For tests of RingReader: a reader that checks the accounting after every poll and keeps the events.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ring/reader_access.hpp"
#include "support/temp_dir.hpp"

namespace rtev::test {

using Times = std::vector<std::uint64_t>;

/// A ring file in a folder of its own.
class RingTest : public ::testing::Test {
 protected:
  const TempDir dir_;
  const std::filesystem::path path_ = dir_ / "1.events";
};

/// An event that a reader delivered.
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

/// Opens the ring file of a known program image.
inline Result<RingReader> open_owned(const std::filesystem::path& path, RingOwner owner,
                                     const RingReader::Options& options = {}) {
  return RingReaderAccess::adopt(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), path, options, std::move(owner));
}

class CheckedReader {
 public:
  explicit CheckedReader(RingReader reader) : reader_(std::move(reader)) { check(); }
  explicit CheckedReader(const std::filesystem::path& path, const RingReader::Options& options = {})
      : CheckedReader(checked(RingReader::open(path, options))) {}
  CheckedReader(const std::filesystem::path& path, RingOwner owner, const RingReader::Options& options = {})
      : CheckedReader(checked(open_owned(path, std::move(owner), options))) {}

  /// One poll; adds the events to seen().
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

  bool taken_over() const { return RingReaderAccess::taken_over(reader_); }

  RingReader& reader() { return reader_; }
  std::vector<Seen>& seen() { return seen_; }
  /// The events since the last call.
  std::vector<Seen> take_seen() { return std::exchange(seen_, {}); }
  /// The same, times only, without losses.
  Times take_times() {
    Times times;
    for (const Seen& each : take_seen()) {
      if (each.event.kind != EventKind::lost) times.push_back(each.event.time);
    }
    return times;
  }
  Accounting words() const { return reader_.accounting(); }

 private:
  /// A file that is created anew may have fewer than before.
  static constexpr std::uint32_t max_domains_of_a_test = 16;

  static RingReader checked(Result<RingReader> reader) {
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
        (static_cast<LossReason>(event.id) == LossReason::corrupt ? reported_corrupt_ : reported_lost_) += loss.words;
      } else {
        ++events_;
      }
    }
  }

  void check(const Accounting& before, const Polled& polled, std::uint64_t events) {
    const Accounting now = reader_.accounting();
    EXPECT_EQ(polled.delivered_words, now.delivered - before.delivered);
    EXPECT_EQ(polled.lost_words, now.lost - before.lost);
    EXPECT_EQ(polled.corrupt_words, now.corrupt - before.corrupt);
    EXPECT_EQ(polled.events, now.events - before.events);
    EXPECT_EQ(polled.events, events);
    EXPECT_GE(polled.fullest, 0);
    EXPECT_LE(polled.fullest, 1);
    if (polled.complete) {
      EXPECT_EQ(RingReaderAccess::behind_since_ns(reader_).has_value(), now.unread != 0);
    }
    check();
  }

  void check() {
    Accounting sum;
    const std::uint32_t domains = std::max(reader_.layout().rings, max_domains_of_a_test);
    for (std::uint16_t domain = 0; domain < domains; ++domain) {
      const Accounting words = reader_.accounting(domain);
      EXPECT_TRUE(words.balanced()) << "domain " << domain;
      // No difference wrapped below zero.
      EXPECT_LE(words.unread, words.written);
      EXPECT_LE(words.delivered, words.written);
      sum += words;
    }
    EXPECT_TRUE(sum.balanced());
    EXPECT_EQ(sum.written, reader_.accounting().written);
    // Loss events may come later than the loss, but never report too much.
    EXPECT_LE(reported_lost_, sum.lost);
    EXPECT_LE(reported_corrupt_, sum.corrupt);
  }

  RingReader reader_;
  std::vector<Seen> seen_;
  std::uint64_t events_ = 0;
  std::uint64_t reported_lost_ = 0;
  std::uint64_t reported_corrupt_ = 0;
};

}  // namespace rtev::test
