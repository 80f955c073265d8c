// SPDX-License-Identifier: MIT
// Rings whose file was reused by another program before they were read: the reader continues in a saved copy.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "rtev/ring_reader.hpp"
#include "support/ring_file_builder.hpp"
#include "unit/ring/checked_reader.hpp"

namespace rtev::test {
namespace {

/// The first program writes events 1, 2, … of two words each, of which some are read; the second reuses the file.
class RingCopyTest : public RingTest, public testing::WithParamInterface<unsigned> {
 protected:
  void write(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t time = first; time <= last; ++time) first_.append(0, make::begin(time, 1));
  }
  /// Saves the ring as it is now.
  void save() { first_.save(copy_path_); }
  void reuse_file(CheckedReader& reader) {
    RingFileBuilder second(path_, {.domains = 2, .words_log2 = GetParam()});
    second.append(0, make::begin(1000, 2));
    second.set_name(3, "second");
    RingReaderAccess::seal(reader.reader(), 500);
    while (!reader.poll().complete) {
    }
    EXPECT_TRUE(reader.taken_over());
  }
  bool continue_in_copy(CheckedReader& reader) const {
    return RingReaderAccess::continue_in_copy(reader.reader(),
                                              UniqueFd(::open(copy_path_.c_str(), O_RDONLY | O_CLOEXEC)))
        .has_value();
  }
  /// Reads the rest.
  static Times rest_of(CheckedReader& reader) {
    while (!reader.poll().complete) {
    }
    reader.finish(2000);
    EXPECT_EQ(reader.words().unread, 0u);
    return reader.take_times();
  }

  const std::filesystem::path copy_path_ = dir_ / "copy";
  RingFileBuilder first_{path_, {.domains = 2, .words_log2 = 6}};
};

TEST_P(RingCopyTest, ContinuesAtThePositionInTheFile) {
  write(1, 3);
  CheckedReader reader(path_, RingOwner{});
  reader.poll();
  EXPECT_EQ(reader.take_times(), (Times{1, 2, 3}));
  write(4, 8);
  first_.append(1, make::begin(7, 1));
  save();
  reuse_file(reader);
  ASSERT_TRUE(continue_in_copy(reader));
  EXPECT_FALSE(reader.taken_over());
  EXPECT_FALSE(reader.reader().truncated());
  EXPECT_EQ(rest_of(reader), (Times{4, 5, 6, 7, 8, 7}));
  EXPECT_EQ(reader.words().written, 18u);
  EXPECT_EQ(reader.words().delivered, 18u);
}

TEST_P(RingCopyTest, SeenButUnreadWordsAreNotLost) {
  write(1, 20);
  CheckedReader reader(path_, RingOwner{});
  reader.poll_domain(0, 1);
  reader.take_seen();
  write(21, 23);
  save();
  reuse_file(reader);
  ASSERT_TRUE(continue_in_copy(reader));
  const Times rest = rest_of(reader);
  ASSERT_FALSE(rest.empty());
  EXPECT_EQ(rest.back(), 23u);
  EXPECT_EQ(reader.words().delivered, 46u);
  EXPECT_EQ(reader.words().lost, 0u);
}

TEST_P(RingCopyTest, WordsThatTheCopyLacksAreLost) {
  write(1, 2);
  CheckedReader reader(path_, RingOwner{});
  reader.poll();
  reader.take_seen();
  write(3, 4);
  save();
  write(5, 9);
  reuse_file(reader);
  ASSERT_TRUE(continue_in_copy(reader));
  RingReaderAccess::expect_words(reader.reader(), 0, 18);
  EXPECT_EQ(rest_of(reader), (Times{3, 4}));
  EXPECT_EQ(reader.words().written, 18u);
  EXPECT_EQ(reader.words().lost, 10u);
}

TEST_P(RingCopyTest, MayHoldLessThanWasRead) {
  write(1, 2);
  save();
  write(3, 9);
  CheckedReader reader(path_, RingOwner{});
  reader.poll();
  EXPECT_EQ(reader.take_times().size(), 9u);
  write(10, 11);
  reuse_file(reader);
  ASSERT_TRUE(continue_in_copy(reader));
  RingReaderAccess::expect_words(reader.reader(), 0, 22);
  EXPECT_EQ(rest_of(reader), Times{});
  EXPECT_EQ(reader.words().delivered, 18u);
  EXPECT_EQ(reader.words().lost, 4u);
  EXPECT_FALSE(reader.taken_over());
}

TEST_P(RingCopyTest, WordsOverwrittenBeforeTheCopyAreLost) {
  write(1, 2);
  CheckedReader reader(path_, RingOwner{});
  reader.poll();
  reader.take_seen();
  write(3, 50);
  save();
  const std::uint64_t head = first_.head(0), tail = first_.tail(0);
  reuse_file(reader);
  ASSERT_TRUE(continue_in_copy(reader));
  const Times rest = rest_of(reader);
  ASSERT_FALSE(rest.empty());
  EXPECT_EQ(rest.back(), 50u);
  EXPECT_EQ(reader.words().written, tail);
  EXPECT_EQ(reader.words().lost, head - 4);
}

TEST_P(RingCopyTest, HasTheNamesOfItsProgram) {
  first_.set_name(3, "first");
  write(1, 2);
  save();
  CheckedReader reader(path_, RingOwner{});
  reuse_file(reader);
  ASSERT_TRUE(continue_in_copy(reader));
  EXPECT_EQ(reader.reader().user_event_name(3), "first");
}

/// Events may be shown after the next program reused the file, and before the end of this one is known.
TEST_P(RingCopyTest, NamesAreReadWithTheEvents) {
  first_.set_name(0, "zeroth");
  first_.set_name(1, "first");
  write(1, 3);
  CheckedReader reader(path_, RingOwner{});
  reader.poll();
  RingFileBuilder second(path_, {.domains = 2, .words_log2 = GetParam()});
  second.append(0, make::begin(1000, 2));
  second.set_name(0, "another's");
  reader.poll();
  EXPECT_TRUE(reader.taken_over());
  EXPECT_EQ(reader.reader().user_event_name(0), "zeroth");
  EXPECT_EQ(reader.reader().user_event_name(1), "first");
  EXPECT_EQ(rest_of(reader), (Times{1, 2, 3}));
}

/// Seen in practice: a program lost its cpu in a page fault in the middle of a name.
TEST_P(RingCopyTest, IncompleteNamesAreReadAgain) {
  first_.set_name(0, "zeroth");
  first_.set_name(1, "fi");
  write(1, 1);
  CheckedReader reader(path_, RingOwner{});
  reader.poll();
  first_.set_name(1, "first");
  write(2, 2);
  reader.poll();
  EXPECT_EQ(reader.reader().user_event_name(0), "zeroth");
  EXPECT_EQ(reader.reader().user_event_name(1), "first");
}

TEST_P(RingCopyTest, CopyOfAnotherRingIsRefused) {
  write(1, 2);
  CheckedReader reader(path_, RingOwner{});
  RingFileBuilder({.domains = 2, .words_log2 = 7}).save(copy_path_);
  write(3, 4);
  reader.poll_domain(1);
  reuse_file(reader);
  EXPECT_FALSE(continue_in_copy(reader));
  EXPECT_TRUE(reader.taken_over());
  EXPECT_EQ(rest_of(reader), Times{});
  EXPECT_FALSE(RingReaderAccess::continue_in_copy(reader.reader(), UniqueFd()));
}

INSTANTIATE_TEST_SUITE_P(SuccessorsSize, RingCopyTest, testing::Values(6u, 8u));

}  // namespace
}  // namespace rtev::test
