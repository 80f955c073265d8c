// SPDX-License-Identifier: MIT
// Rings put together from pieces: all of them, some of them, and such as no ring could have.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "processes/rings/saved_rings.hpp"
#include "support/ring_file_builder.hpp"
#include "unit/ring/checked_reader.hpp"

namespace rtev {
namespace {

using test::CheckedReader;
using test::RingFileBuilder;
using test::Words;
using Times = std::vector<std::uint64_t>;
namespace make = test::make;

constexpr std::uint64_t ring_words = 64;
constexpr std::uint64_t header_words = sizeof(FileHeader) / 8;

class SavedRingTest : public testing::Test {
 protected:
  SavedRing start() {
    auto ring = SavedRing::create(file_.header(), file_.bytes().size());
    EXPECT_TRUE(ring);
    return std::move(*ring);
  }

  /// Words of the builder's ring, by their positions.
  Words words(std::uint32_t domain, std::uint64_t begin, std::uint64_t end) const {
    Words found;
    for (std::uint64_t position = begin; position < end; ++position)
      found.push_back(file_.word(domain, position & (ring_words - 1)));
    return found;
  }
  void add(SavedRing& ring, std::uint32_t domain, std::uint64_t begin, std::uint64_t end) const {
    const Words piece = words(domain, begin, end);
    ring.add_words(domain, begin, std::as_bytes(std::span(piece)));
  }
  void add_domain(SavedRing& ring, std::uint32_t domain) const {
    ring.add_domain(domain, file_.head(domain), file_.tail(domain));
  }

  /// Reads all that was put together, checking at each step that every word is accounted for.
  struct Read {
    Times times;
    Accounting words;
    std::uint64_t told_lost = 0;
    std::vector<Loss> losses;
  };
  static Read read(SavedRing& ring) {
    SavedRingFile file = ring.finish().value();
    CheckedReader reader(RingReader::adopt(file.fd.release(), "saved", {}).value());
    for (const CutDomain& cut : file.cut) RingReaderAccess::expect_words(reader.reader(), cut.domain, cut.written);
    for (int polls = 0; polls < 100 && !reader.poll().complete; ++polls) {
    }
    reader.finish(1'000'000);
    Read read{.times = {}, .words = reader.words(), .losses = {}};
    for (const test::Seen& seen : reader.seen()) {
      if (seen.event.kind == EventKind::lost)
        read.losses.push_back(seen.loss());
      else
        read.times.push_back(seen.event.time);
    }
    return read;
  }

  /// Two words each, times from 1 on.
  void write_events(std::uint32_t domain, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) file_.append(domain, make::begin(++time_, 3));
  }
  static Times range(std::uint64_t first, std::uint64_t last) {
    Times times(last + 1 - first);
    std::iota(times.begin(), times.end(), first);
    return times;
  }

  RingFileBuilder file_{{.domains = 3, .words_log2 = 6}};
  std::uint64_t time_ = 0;
};

TEST_F(SavedRingTest, InOnePiece) {
  write_events(0, 10);
  SavedRing ring = start();
  add(ring, 0, 0, 20);
  add_domain(ring, 0);
  const Read got = read(ring);
  EXPECT_EQ(got.times, range(1, 10));
  EXPECT_EQ(got.words.delivered, 20u);
  EXPECT_EQ(got.words.written, 20u);
}

TEST_F(SavedRingTest, PiecesInAnyOrderAndMoreThanOnce) {
  write_events(0, 100);  // around the ring's end three times
  const std::uint64_t head = file_.head(0), tail = file_.tail(0);
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    SavedRing ring = start();
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
    for (std::uint64_t begin = head; begin < tail;) {
      const std::uint64_t end = std::min(tail, begin + 1 + random() % 9);
      pieces.emplace_back(begin, end);
      if (random() % 2) pieces.emplace_back(begin - (begin - head) / 2, end);
      begin = end;
    }
    std::ranges::shuffle(pieces, random);
    for (const auto& [begin, end] : pieces) add(ring, 0, begin, end);
    add_domain(ring, 0);
    const Read got = read(ring);
    EXPECT_EQ(got.times, range(101 - (tail - head) / 2, 100));
    EXPECT_EQ(got.words.written, tail);
    EXPECT_EQ(got.words.before_attach, head);
    EXPECT_EQ(got.words.delivered, tail - head);
  }
}

TEST_F(SavedRingTest, DomainsKeepTheirNumbers) {
  write_events(0, 2);
  write_events(2, 3);
  SavedRing ring = start();
  for (const std::uint32_t domain : {2u, 0u}) {
    add(ring, domain, 0, file_.tail(domain));
    add_domain(ring, domain);
  }
  auto file = ring.finish();
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->cut.empty());
  auto reader = RingReader::adopt(file->fd.release(), "saved", {});
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->accounting(0).written, 4u);
  EXPECT_EQ(reader->accounting(1).written, 0u);
  EXPECT_EQ(reader->accounting(2).written, 6u);
}

TEST_F(SavedRingTest, WhatIsMissingInTheMiddleEndsTheDomainAndIsCounted) {
  file_.append(0, make::user_custom(1, 9, std::string(24, 'x')));
  const std::uint64_t first = file_.tail(0);
  write_events(0, 4);
  const std::uint64_t tail = file_.tail(0);
  // Whatever the piece that is missing, what comes before it is handed out, in whole messages.
  for (std::uint64_t begin = 0; begin < tail; ++begin) {
    SavedRing ring = start();
    if (begin > 0) add(ring, 0, 0, begin);
    if (begin + 1 < tail) add(ring, 0, begin + 1, tail);
    add_domain(ring, 0);
    const Read got = read(ring);
    const std::uint64_t whole = begin < first ? 0 : first + (begin - first) / 2 * 2;
    EXPECT_EQ(got.words.delivered, whole) << begin;
    EXPECT_EQ(got.words.lost, tail - whole) << begin;
    EXPECT_EQ(got.words.written, tail);
    ASSERT_EQ(got.losses.size(), 1u);
    EXPECT_EQ(got.losses[0].words, tail - whole);
    EXPECT_EQ(got.losses[0].to_ns, 1'000'000u);
    EXPECT_EQ(got.losses[0].from_ns, got.times.empty() ? 0 : got.times.back());
  }
}

TEST_F(SavedRingTest, NothingButTheFiguresIsAllLost) {
  write_events(1, 5);
  SavedRing ring = start();
  add_domain(ring, 1);
  const Read got = read(ring);
  EXPECT_TRUE(got.times.empty());
  EXPECT_EQ(got.words.lost, 10u);
  EXPECT_EQ(got.words.written, 10u);
}

TEST_F(SavedRingTest, LaterFiguresAreTheRightOnes) {
  // A first domain comes to the barrier while another still writes, and overwrites what was just copied.
  write_events(0, 31);
  SavedRing ring = start();
  add(ring, 0, 0, 62);
  add_domain(ring, 0);
  write_events(0, 8);
  add(ring, 0, 62, 78);
  add_domain(ring, 0);
  const Read got = read(ring);
  const std::uint64_t head = file_.head(0);
  EXPECT_EQ(got.times, range(head / 2 + 1, 39));
  EXPECT_EQ(got.words.before_attach, head);
  EXPECT_EQ(got.words.delivered, 78 - head);
}

TEST_F(SavedRingTest, OlderWordsDoNotOverwriteNewerOnes) {
  write_events(0, 31);
  const Words old = words(0, 0, 62);
  write_events(0, 8);
  SavedRing ring = start();
  add(ring, 0, file_.head(0), file_.tail(0));
  ring.add_words(0, 0, std::as_bytes(std::span(old)));
  add_domain(ring, 0);
  EXPECT_EQ(read(ring).times, range(file_.head(0) / 2 + 1, 39));
}

TEST_F(SavedRingTest, WithoutFiguresWhatIsThereIsReadAndNoMore) {
  write_events(0, 5);
  SavedRing ring = start();
  add(ring, 0, 0, 6);
  add(ring, 0, 8, 10);
  EXPECT_EQ(read(ring).times, range(1, 3));
}

TEST_F(SavedRingTest, NamesAreKept) {
  file_.set_name(0, "first");
  file_.set_name(1, "second");
  SavedRing ring = start();
  const auto names = file_.bytes().subspan(file_.header().custom_events_offset);
  const auto first = names.first(user_event_name_bytes),
             second = names.subspan(user_event_name_bytes).first(first.size());
  ring.add_name(0, first);
  ring.add_name(1, second);
  ring.add_name(2, first.first(100));
  ring.add_name(3, names);
  ring.add_name(user_event_slots, first);
  ring.add_name(UINT64_MAX, first);
  auto file = ring.finish();
  ASSERT_TRUE(file);
  auto reader = RingReader::adopt(file->fd.release(), "saved", {});
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->user_event_name(0), "first");
  EXPECT_EQ(reader->user_event_name(1), "second");
  EXPECT_EQ(reader->user_event_name(2), "");
  EXPECT_EQ(reader->user_event_name(3), "");
}

TEST_F(SavedRingTest, NoPiecesOfARing) {
  write_events(0, 4);
  SavedRing ring = start();
  const Words many(2 * ring_words, ~0ULL);
  const auto bytes = std::as_bytes(std::span(many));
  ring.add_words(0, 0, bytes);            // more than the ring holds
  ring.add_words(3, 0, bytes.first(16));  // a domain that is not there
  ring.add_words(UINT32_MAX, 0, bytes.first(16));
  ring.add_words(1, UINT64_MAX, bytes.first(16));  // beyond all numbers
  ring.add_words(1, 0, bytes.first(7));            // less than a word
  ring.add_domain(3, 0, 8);
  ring.add_domain(1, 8, 0);
  ring.add_domain(1, 0, ring_words + 1);
  ring.add_domain(2, 0, UINT64_MAX);
  add(ring, 0, 0, 8);
  add_domain(ring, 0);
  const Read got = read(ring);
  EXPECT_EQ(got.times, range(1, 4));
  EXPECT_EQ(got.words.written, 8u);
}

TEST_F(SavedRingTest, AnyPiecesAreSurvivedAndAccountedFor) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 2000; ++round) {
    SavedRing ring = start();
    for (int piece = 0; piece < 12; ++piece) {
      const std::uint64_t base = random() % 4 == 0 ? UINT64_MAX - 300 : random() % 4 == 0 ? random() : 0;
      const std::uint64_t begin = base + random() % 200;
      Words words(random() % 70);
      for (std::uint64_t& word : words)
        word = random() % 2 ? message::first_word(random() % 8, false, message::begin, 3) : random();
      const auto domain = static_cast<std::uint32_t>(random() % 4);
      if (random() % 3 == 0)
        ring.add_domain(domain, begin, begin + random() % 70);
      else
        ring.add_words(domain, begin, std::as_bytes(std::span(words)));
    }
    const Read got = read(ring);
    EXPECT_TRUE(got.words.balanced());
    EXPECT_EQ(got.words.unread, 0u);
  }
}

TEST(SavedRing, HeadersAreChecked) {
  RingFileBuilder file({.domains = 2, .words_log2 = 6});
  const std::uint64_t size = file.bytes().size();
  EXPECT_TRUE(SavedRing::create(file.header(), size));
  EXPECT_FALSE(SavedRing::create(file.header(), size - 1));
  EXPECT_FALSE(SavedRing::create(file.header(), 0));
  for (std::size_t field = 0; field < header_words; ++field) {
    FileHeader header = file.header();
    std::uint64_t numbers[header_words];
    std::memcpy(numbers, &header, sizeof header);
    numbers[field] = ~0ULL;
    std::memcpy(&header, numbers, sizeof header);
    EXPECT_FALSE(SavedRing::create(header, size)) << field;
  }
}

}  // namespace
}  // namespace rtev
