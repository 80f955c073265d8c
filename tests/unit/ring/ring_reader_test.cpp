// SPDX-License-Identifier: MIT
// RingReader polls rings that are written between the polls. CheckedReader checks the accounting after each poll.
#include "rtev/ring_reader.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <numeric>

#include "rtev/names.hpp"
#include "support/ring_file_builder.hpp"
#include "unit/ring/checked_reader.hpp"

namespace rtev::test {
namespace {

class RingReaderTest : public RingTest {};

Times range(std::uint64_t begin, std::uint64_t end) {
  Times times(end - begin);
  std::iota(times.begin(), times.end(), begin);
  return times;
}

TEST_F(RingReaderTest, DeliversEachEventOnce) {
  RingFileBuilder file(path_, {.domains = 2, .words_log2 = 6});
  file.append(0, make::lifecycle(1, Lifecycle::ring_start, 42));
  file.append(0, make::begin(2, 11));
  file.append(1, make::user_custom(3, 9, "hello"));
  CheckedReader reader(path_, {.clock_offset_ns = 1000, .slot = 5});
  EXPECT_EQ(reader.words().unread, 8u);
  const Polled polled = reader.poll();
  EXPECT_EQ(polled.events, 3u);
  EXPECT_EQ(polled.delivered_words, 8u) << "3 + 2 + 3";
}

TEST_F(RingReaderTest, EventsCarrySourceAndTime) {
  RingFileBuilder file(path_, {.domains = 2, .words_log2 = 6});
  file.append(1, make::counter(7, 4, 99));
  CheckedReader reader(path_, {.clock_offset_ns = -5, .slot = 5});
  reader.poll();
  RingReaderAccess::set_slot(reader.reader(), 6);
  file.append(0, make::begin(8, 1));
  reader.poll();
  ASSERT_EQ(reader.seen().size(), 2u);
  EXPECT_EQ(reader.seen()[0].event.source, (Source{5, 1}.pack()));
  EXPECT_EQ(reader.seen()[0].event.time, 2u);
  EXPECT_EQ(reader.seen()[0].event.value, 99u);
  EXPECT_EQ(reader.seen()[1].event.source, (Source{6, 0}.pack()));
  EXPECT_EQ(reader.reader().active_domains(), 2u);
}

TEST_F(RingReaderTest, WrapsAroundWithPaddingOfEveryLength) {
  // Custom events of all lengths in a small ring need padding of all lengths at its end.
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 9});
  CheckedReader reader(path_);
  std::uint64_t time = 0;
  for (int lap = 0; lap < 40; ++lap) {
    for (std::size_t size = 0; size < 1000; size += 61) {
      const std::string text(size, static_cast<char>('a' + lap));
      file.append(0, make::user_custom(++time, 1, text));
      file.append(0, make::end(++time, 1));
      EXPECT_TRUE(reader.poll().complete);
      const auto seen = reader.take_seen();
      ASSERT_EQ(seen.size(), 2u);
      ASSERT_EQ(seen[0].payload, text);
      ASSERT_EQ(seen[1].event.time, time);
    }
  }
  EXPECT_EQ(reader.words().delivered, file.tail(0));
  EXPECT_EQ(reader.words().lost, 0u);
  EXPECT_EQ(reader.words().corrupt, 0u);
}

TEST_F(RingReaderTest, PaddingPublishedAloneIsConsumed) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 4});
  for (std::uint64_t i = 0; i < 7; ++i) file.append(0, make::begin(i, 1));
  CheckedReader reader(path_);
  reader.poll();
  EXPECT_EQ(reader.take_times(), range(0, 7));
  file.append(0, make::counter(7, 1, 1));
  const std::uint64_t tail = file.tail(0);
  file.set_tail(0, 16);
  EXPECT_EQ(reader.poll().delivered_words, 2u);
  EXPECT_TRUE(reader.take_seen().empty());
  file.set_tail(0, tail);
  reader.poll();
  EXPECT_EQ(reader.take_times(), Times{7});
}

TEST_F(RingReaderTest, MessagesAcrossChunksAreDelivered) {
  // Rings of several batches of 2048 words, with messages at all offsets to the end of a batch.
  for (const std::size_t size : {1u, 3u, 20u, 100u, 500u, 1000u, 1024u}) {
    RingFileBuilder file(path_, {.domains = 1, .words_log2 = 15});
    std::uint64_t time = 0;
    while (file.tail(0) < 32'000) {
      file.append(0, make::user_custom(time, 1, std::string(size, static_cast<char>(time))));
      ++time;
    }
    CheckedReader reader(path_);
    EXPECT_TRUE(reader.poll().complete);
    EXPECT_EQ(reader.words().corrupt, 0u);
    ASSERT_EQ(reader.seen().size(), time);
    for (std::uint64_t i = 0; i < time; ++i) {
      ASSERT_EQ(reader.seen()[i].event.time, i);
      ASSERT_EQ(reader.seen()[i].payload, std::string(size, static_cast<char>(i)));
    }
  }
}

TEST_F(RingReaderTest, OverwritingBetweenPollsIsALoss) {
  RingFileBuilder file(path_, {.domains = 2, .words_log2 = 6});
  CheckedReader reader(path_);
  file.append(1, make::begin(1, 1));
  reader.poll();
  for (std::uint64_t time = 10; time < 100; ++time) file.append(1, make::begin(time, 1));
  const std::uint64_t lost = file.head(1) - 2;
  const Polled polled = reader.poll();
  EXPECT_EQ(polled.lost_words, lost);
  EXPECT_EQ(polled.fullest, 1.0);
  ASSERT_EQ(reader.seen()[1].event.kind, EventKind::lost);
  const Loss loss = reader.seen()[1].loss();
  EXPECT_EQ(reader.seen()[1].event.id, static_cast<std::uint16_t>(LossReason::overwritten));
  EXPECT_EQ(reader.seen()[1].domain(), 1u);
  EXPECT_EQ(loss.words, lost);
  EXPECT_EQ(loss.from_ns, 1u);
  EXPECT_EQ(loss.to_ns, 10 + lost / 2);
  EXPECT_EQ(reader.seen()[2].event.time, loss.to_ns) << "the event that ends the gap follows";
}

/// The writer overtakes the reader from within its consumer: after the first batch, before the second is copied.
TEST_F(RingReaderTest, OverwritingDuringAPollIsALoss) {
  for (std::uint64_t written = 0; written < 9000; written += 487) {
    RingFileBuilder file(path_, {.domains = 1, .words_log2 = 14});
    std::uint64_t time = 0;
    while (file.tail(0) < 16'380) file.append(0, make::begin(++time, 1));
    auto reader = RingReader::open(path_);
    ASSERT_TRUE(reader);
    std::vector<Event> events;
    std::uint64_t lost = 0;
    const auto consume = [&](const Batch& batch) {
      const bool first = events.empty();
      for (const Event& event : batch.events()) {
        if (event.kind == EventKind::lost) {
          lost += batch.payload_as<Loss>(event)->words;
        } else {
          events.push_back(event);
        }
      }
      for (std::uint64_t i = 0; first && i < written; ++i) file.append(0, make::begin(++time, 1));
    };
    reader->poll(consume);
    EXPECT_TRUE(reader->accounting().balanced());
    while (!reader->poll(consume).complete) {
    }
    reader->poll(consume);
    const Accounting words = reader->accounting();
    EXPECT_TRUE(words.balanced());
    EXPECT_EQ(words.corrupt, 0u);
    EXPECT_EQ(words.lost, lost);
    EXPECT_EQ(words.unread, 0u);
    // Every event has two words, so the missing events give the lost words.
    std::uint64_t missing = 0, previous = 0;
    for (const Event& event : events) {
      ASSERT_GT(event.time, previous);
      missing += event.time - previous - 1;
      previous = event.time;
    }
    EXPECT_EQ(previous, time);
    // The ring's length is even, so there is no padding.
    EXPECT_EQ(missing * 2, words.lost) << written;
  }
}

TEST_F(RingReaderTest, HeadIsLoadedAfterTheCopy) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 6});
  for (std::uint64_t i = 0; i < 20; ++i) file.append(0, make::begin(i, 1));
  // Words that the head has passed may be torn: garbage there is a loss, not corruption.
  CheckedReader reader(path_);
  for (std::uint64_t i = 0; i < 10; ++i) file.set_word(0, i, 0xffff'ffff);
  file.set_head(0, 10);
  reader.poll();
  EXPECT_EQ(reader.words().lost, 10u);
  EXPECT_EQ(reader.words().corrupt, 0u);
  EXPECT_EQ(reader.take_times(), range(5, 20));
}

TEST_F(RingReaderTest, ResumesAfterCorruption) {
  const Words nonsense[] = {
      {0, 0},                                                             // no length
      {message::first_word(2, false, message::begin, 1) | 1, 5},          // bits that are always zero
      {message::first_word(2, false, 6, 1), 5},                           // a type that is never emitted
      {message::first_word(2, true, 15, 1), 5},                           // a type that does not exist
      {message::first_word(5, false, message::counter, 1), 5, 5},         // another length than its kind has
      {message::first_word(500, true, message::custom, 1), 5, 5},         // longer than what was published
      {message::first_word(3, true, message::custom, 1), 5, UINT64_MAX},  // an impossible count of bytes
      {message::first_word(1000, false, message::padding, 0), 5, 5},
  };
  for (const Words& words : nonsense) {
    RingFileBuilder file(path_, {.domains = 2, .words_log2 = 6});
    CheckedReader reader(path_);
    file.append(0, make::begin(1, 1));
    file.append(0, words);
    file.append(0, make::begin(2, 1));
    file.append(1, make::begin(3, 1));
    EXPECT_TRUE(reader.poll().complete);
    EXPECT_EQ(reader.words().corrupt, words.size() + 2) << "up to the next known beginning of a message";
    EXPECT_EQ(reader.take_times(), (Times{1, 3})) << "other domains are not affected";
    file.append(0, make::end(9, 1));
    reader.poll();
    const auto seen = reader.take_seen();
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen[0].event.id, static_cast<std::uint16_t>(LossReason::corrupt));
    EXPECT_EQ(seen[0].loss().words, words.size() + 2);
    EXPECT_EQ(seen[0].loss().from_ns, 1u);
    EXPECT_EQ(seen[0].loss().to_ns, 9u);
    EXPECT_EQ(seen[1].event.time, 9u);
  }
}

TEST_F(RingReaderTest, MessageThatCrossesThePhysicalEndIsCorrupt) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 4});
  for (std::uint64_t i = 0; i < 9; ++i) file.append(0, make::begin(i, 1));
  file.set_word(0, 14, message::first_word(3, false, message::counter, 1));
  CheckedReader reader(path_);
  reader.poll();
  EXPECT_GT(reader.words().corrupt, 0u);
  EXPECT_EQ(reader.words().unread, 0u);
}

TEST_F(RingReaderTest, LossesAtTheEndAreDeliveredByFinish) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 6});
  CheckedReader reader(path_);
  file.append(0, make::begin(50, 1));
  file.append(0, {0, 0});
  reader.poll();
  EXPECT_EQ(reader.take_times(), Times{50});
  reader.finish(70);
  ASSERT_EQ(reader.seen().size(), 1u);
  EXPECT_EQ(reader.seen()[0].loss().words, 2u);
  EXPECT_EQ(reader.seen()[0].loss().from_ns, 50u);
  EXPECT_EQ(reader.seen()[0].event.time, 70u);
  reader.take_seen();
  reader.finish(80);
  EXPECT_TRUE(reader.seen().empty()) << "delivered once";
  file.append(0, {0, 0});
  reader.poll();
  reader.finish(10);
  ASSERT_EQ(reader.seen().size(), 1u);
  EXPECT_EQ(reader.seen()[0].event.time, 50u) << "not before the last event";
}

TEST_F(RingReaderTest, ImpossibleIndicesAreCorrupt) {
  RingFileBuilder file(path_, {.domains = 1, .words_log2 = 6});
  file.append(0, make::begin(1, 1));
  file.set_tail(0, 1000);
  {
    CheckedReader reader(path_);
    reader.poll();
    EXPECT_EQ(reader.words().corrupt, 1000u) << "more words than the ring has";
  }
  file.set_tail(0, 2);
  file.set_head(0, 10);
  CheckedReader reader(path_);
  reader.poll();
  EXPECT_EQ(reader.words().written, 2u);
  EXPECT_EQ(reader.words().unread, 0u);
  file.set_tail(0, UINT64_MAX);
  EXPECT_LE(reader.poll().fullest, 1.0);
}

}  // namespace
}  // namespace rtev::test
