// SPDX-License-Identifier: MIT
// Ring files that change under the reader: created anew by the next program with the same pid, truncated, grown.
#include <gtest/gtest.h>

#include <optional>

#include "rtev/names.hpp"
#include "rtev/ring_reader.hpp"
#include "support/ring_file_builder.hpp"
#include "unit/ring/checked_reader.hpp"

namespace rtev::test {
namespace {

class RingLifeTest : public RingTest {};

TEST_F(RingLifeTest, RestartIsDetectedByIndicesThatGoBack) {
  RingFileBuilder first(path_, {.domains = 2, .words_log2 = 6});
  first.set_name(3, "old");
  for (std::uint64_t i = 0; i < 10; ++i) first.append(1, make::begin(i, 1));
  CheckedReader reader(path_);
  reader.poll();
  EXPECT_EQ(reader.reader().user_event_name(3), "old");
  reader.take_seen();
  first.append(1, make::begin(10, 1));
  first.append(1, make::begin(11, 1));
  reader.poll();
  EXPECT_EQ(reader.take_times(), (Times{10, 11}));

  RingFileBuilder second(path_, {.domains = 2, .words_log2 = 6});
  second.append(0, make::lifecycle(100, Lifecycle::ring_start, 1));
  second.append(1, make::begin(101, 1));
  second.set_name(3, "new");
  EXPECT_TRUE(reader.poll().complete);
  EXPECT_EQ(reader.take_times(), (Times{100, 101}));
  EXPECT_EQ(reader.reader().incarnation(), 1u);
  EXPECT_EQ(reader.reader().user_event_name(3), "new");
  EXPECT_EQ(reader.words().written, 24u + 5u) << "of both programs";
  EXPECT_EQ(reader.words().lost, 0u);
  EXPECT_EQ(reader.reader().active_domains(), 2u);
}

TEST_F(RingLifeTest, UnreadWordsAreLostByARestart) {
  RingFileBuilder first(path_, {.domains = 1, .words_log2 = 15});
  for (std::uint64_t i = 0; i < 8000; ++i) first.append(0, make::begin(i, 1));
  CheckedReader reader(path_);
  reader.poll(1);
  const std::uint64_t unread = reader.words().unread;
  ASSERT_GT(unread, 0u);
  RingFileBuilder second(path_, {.domains = 1, .words_log2 = 15});
  second.append(0, make::begin(9000, 1));
  EXPECT_EQ(reader.poll().lost_words, unread);
  EXPECT_EQ(reader.words().lost, unread);
  EXPECT_EQ(reader.seen().back().event.time, 9000u);
}

TEST_F(RingLifeTest, RestartIsDetectedBeyondTheOldIndices) {
  RingFileBuilder first(path_, {.domains = 2, .words_log2 = 6});
  first.append(0, make::lifecycle(1, Lifecycle::ring_start, 1));
  CheckedReader reader(path_);
  reader.poll();
  reader.take_seen();
  RingFileBuilder second(path_, {.domains = 2, .words_log2 = 6});
  for (std::uint64_t i = 100; i < 110; ++i) second.append(0, make::begin(i, 1));
  reader.poll();
  EXPECT_EQ(reader.take_times().size(), 10u) << "shown by the time of the first message";
  EXPECT_EQ(reader.reader().incarnation(), 1u);
}

TEST_F(RingLifeTest, RestartIsDetectedByTheHead) {
  RingFileBuilder first(path_, {.domains = 1, .words_log2 = 4});
  for (std::uint64_t i = 0; i < 10; ++i) first.append(0, make::begin(i, 1));
  CheckedReader reader(path_, {.history = RingReader::History::skip});
  first.set_tail(0, 20);
  reader.poll();
  RingFileBuilder second(path_, {.domains = 1, .words_log2 = 5});
  for (std::uint64_t i = 100; i < 115; ++i) second.append(0, make::begin(i, 1));
  reader.poll();
  EXPECT_EQ(reader.take_times().size(), 15u);
}

TEST_F(RingLifeTest, RingsThatWereNotResetYetAreNotReadTwice) {
  RingFileBuilder first(path_, {.domains = 2, .words_log2 = 6});
  first.append(0, make::begin(1, 1));
  first.append(1, make::begin(2, 1));
  CheckedReader reader(path_);
  reader.poll();
  reader.take_seen();
  // The new program has reset the indices of ring 0, but not yet those of ring 1.
  first.set_tail(0, 0);
  reader.poll();
  EXPECT_TRUE(reader.take_seen().empty());
  RingFileBuilder second(path_, {.domains = 2, .words_log2 = 6});
  second.append(1, make::begin(3, 1));
  second.append(1, make::begin(4, 1));
  reader.poll();
  EXPECT_EQ(reader.take_times(), (Times{3, 4}));
}

TEST_F(RingLifeTest, RestartWithOtherSizesIsFollowed) {
  const RingFileOptions shapes[] = {
      {.domains = 2, .words_log2 = 10}, {.domains = 8, .words_log2 = 6},  // smaller file, more rings
      {.domains = 1, .words_log2 = 12}, {.domains = 1, .words_log2 = 12, .names = false},
      {.domains = 16, .words_log2 = 8}, {.domains = 2, .words_log2 = 10}};
  std::optional<CheckedReader> reader;
  std::uint64_t time = 0;
  std::uint32_t incarnation = 0;
  for (const auto& shape : shapes) {
    RingFileBuilder file(path_, shape);
    if (!reader) reader.emplace(path_);
    Times expected;
    for (std::uint32_t domain = 0; domain < shape.domains; ++domain) {
      expected.push_back(++time);
      // With another length, because equal indices show nothing until they move.
      file.append(domain, shape.names ? make::begin(time, 1) : make::counter(time, 1, 1));
    }
    reader->poll();
    reader->poll();
    EXPECT_EQ(reader->take_times(), expected);
    EXPECT_EQ(reader->reader().layout().rings, shape.domains);
    EXPECT_EQ(reader->reader().incarnation(), incarnation++);
    EXPECT_FALSE(reader->reader().truncated());
  }
  EXPECT_EQ(reader->words().lost, 0u);
  EXPECT_EQ(reader->reader().active_domains(), 16u);
}

TEST_F(RingLifeTest, SealedReaderIgnoresTheNextProgram) {
  for (const unsigned words_log2 : {6u, 8u}) {
    RingFileBuilder first(path_, {.domains = 2, .words_log2 = 6});
    first.append(0, make::begin(1, 1));
    first.append(0, make::begin(2, 1));
    CheckedReader reader(path_);
    reader.poll();
    first.append(1, make::begin(3, 1));
    RingReaderAccess::seal(reader.reader());
    reader.poll();
    EXPECT_EQ(reader.take_times(), (Times{1, 2, 3}));
    const Accounting words = reader.words();
    RingFileBuilder second(path_, {.domains = 2, .words_log2 = words_log2});
    second.append(0, make::begin(100, 1));
    for (int i = 0; i < 3; ++i) reader.poll();
    EXPECT_TRUE(reader.take_seen().empty());
    EXPECT_EQ(reader.words().written, words.written);
    EXPECT_EQ(reader.words().unread, 0u);
    EXPECT_EQ(reader.reader().incarnation(), 0u);
  }
}

/// The next program wrote more than a ring holds: its indices alone do not show the change.
TEST_F(RingLifeTest, SealedReaderRecognisesASuccessorByItsTimes) {
  for (const bool has_ended : {true, false}) {
    RingFileBuilder first(path_, {.domains = 1, .words_log2 = 6});
    for (std::uint64_t time = 1; time <= 3; ++time) first.append(0, make::begin(time, 1));
    CheckedReader reader(path_);
    reader.poll();
    reader.take_seen();
    first.append(0, make::begin(4, 1));
    if (has_ended) {
      RingFileBuilder second(path_, {.domains = 1, .words_log2 = 6});
      for (std::uint64_t time = 100; time < 200; ++time) second.append(0, make::begin(time, 1));
    }
    RingReaderAccess::seal(reader.reader(), 50);
    for (int i = 0; i < 3; ++i) reader.poll();
    EXPECT_EQ(reader.take_times(), has_ended ? Times{} : Times{4});
    EXPECT_EQ(reader.taken_over(), has_ended);
    EXPECT_EQ(reader.words().unread, 0u);
    EXPECT_EQ(reader.words().lost, 0u) << "of what was seen";
  }
}

TEST_F(RingLifeTest, ReaderWithAnOwnerIgnoresTheNextProgram) {
  for (const RingFileOptions& next : {RingFileOptions{.domains = 1, .words_log2 = 6},
                                      {.domains = 1, .words_log2 = 8},
                                      {.domains = 64, .words_log2 = 6}}) {
    RingFileBuilder first(path_, {.domains = 1, .words_log2 = 6});
    for (std::uint64_t time = 1; time <= 5; ++time) first.append(0, make::begin(time, 1));
    CheckedReader reader(path_, RingOwner{});
    const std::uint64_t mapped = RingReaderAccess::layout(reader.reader()).mapped_bytes();
    reader.poll();
    EXPECT_EQ(reader.take_times(), (Times{1, 2, 3, 4, 5}));
    RingFileBuilder second(path_, next);
    second.append(0, make::begin(100, 1));
    for (int i = 0; i < 3; ++i) reader.poll();
    EXPECT_EQ(RingReaderAccess::layout(reader.reader()).mapped_bytes(), mapped);
    RingReaderAccess::seal(reader.reader(), 200);
    reader.poll();
    EXPECT_TRUE(reader.take_seen().empty());
    EXPECT_TRUE(reader.taken_over());
    EXPECT_EQ(reader.reader().incarnation(), 0u);
    EXPECT_EQ(reader.words().written, 10u);
  }
}

TEST_F(RingLifeTest, TruncationAtAnyLengthIsSurvived) {
  const RingFileOptions shape{.domains = 4, .words_log2 = 10};
  const std::uint64_t full = RingFileBuilder::file_size(shape);
  // Headers and data end at byte 33152; the rest are names.
  for (std::uint64_t size = 0; size < full; size += size < 34'000 ? 509 : 100'003) {
    RingFileBuilder file(path_, shape);
    for (std::uint32_t domain = 0; domain < 4; ++domain) {
      for (std::uint64_t i = 0; i < 300; ++i) file.append(domain, make::begin(i, 1));
    }
    CheckedReader reader(path_);
    reader.poll_domain(0);
    std::filesystem::resize_file(path_, size);
    for (int polls = 0; polls < 3; ++polls) reader.poll();
    EXPECT_EQ(reader.words().unread, 0u) << size;
    EXPECT_EQ(reader.words().delivered + reader.words().lost + reader.words().corrupt, 2400u);
    if (size < 64) {
      EXPECT_TRUE(reader.reader().truncated());
      EXPECT_EQ(reader.words().delivered, 600u);
    }
    reader.reader().user_event_name(8191);
    for (int polls = 0; polls < 300; ++polls) reader.poll();
    EXPECT_TRUE(reader.reader().truncated()) << "noticed sooner or later: " << size;
  }
}

TEST_F(RingLifeTest, TruncationBeforeTheFirstPollIsSurvived) {
  RingFileBuilder file(path_, {});
  file.append(0, make::begin(1, 1));
  CheckedReader reader(path_);
  std::filesystem::resize_file(path_, 0);
  EXPECT_TRUE(reader.poll().complete);
  EXPECT_TRUE(reader.reader().truncated());
  EXPECT_EQ(reader.words().lost, 2u);
  reader.finish(9);
  ASSERT_EQ(reader.seen().size(), 1u);
  EXPECT_EQ(reader.seen()[0].loss().words, 2u);
}

TEST_F(RingLifeTest, RestartAfterATruncationIsFollowed) {
  RingFileBuilder first(path_, {.domains = 2, .words_log2 = 6});
  first.append(0, make::begin(1, 1));
  CheckedReader reader(path_);
  reader.poll();
  std::filesystem::resize_file(path_, 0);
  reader.poll();
  EXPECT_TRUE(reader.reader().truncated());
  // The next program sets the file's size, then its header. A reader may see each step.
  std::filesystem::resize_file(path_, RingFileBuilder::file_size({.domains = 2, .words_log2 = 6}));
  reader.poll();
  EXPECT_TRUE(reader.reader().truncated());
  RingFileBuilder second(path_, {.domains = 2, .words_log2 = 6});
  second.append(0, make::begin(10, 1));
  reader.poll();
  EXPECT_FALSE(reader.reader().truncated());
  EXPECT_EQ(reader.take_times(), (Times{1, 10}));
  EXPECT_EQ(reader.reader().incarnation(), 1u);
}

TEST_F(RingLifeTest, GrownFileIsStillTheSame) {
  for (const bool names : {true, false}) {
    RingFileBuilder file(path_, {.domains = 1, .words_log2 = 6, .names = names});
    file.append(0, make::begin(1, 1));
    CheckedReader reader(path_);
    reader.poll();
    std::filesystem::resize_file(path_, std::filesystem::file_size(path_) + 12'345);
    for (int polls = 0; polls < 600; ++polls) reader.poll();
    file.append(0, make::begin(2, 1));
    reader.poll();
    EXPECT_EQ(reader.take_times(), (Times{1, 2}));
    EXPECT_EQ(reader.reader().incarnation(), 0u);
    EXPECT_FALSE(reader.reader().truncated());
  }
}

TEST_F(RingLifeTest, ReadsAnUnlinkedFile) {
  RingFileBuilder file(path_, {});
  CheckedReader reader(path_);
  std::filesystem::remove(path_);
  file.append(0, make::begin(1, 1));
  reader.poll();
  EXPECT_EQ(reader.take_times(), Times{1});
}

}  // namespace
}  // namespace rtev::test
