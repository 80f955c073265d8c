// SPDX-License-Identifier: MIT
// Rings whose file is another program's by the time they are read: what was saved of them is read instead.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "rtev/ring_reader.hpp"
#include "support/ring_file.hpp"
#include "support/temp_dir.hpp"
#include "unit/ring/reading.hpp"

namespace rtev {
namespace {

using test::CheckedReader;
using test::RingFileBuilder;
using Times = std::vector<std::uint64_t>;
namespace make = test::make;

/// The first program writes events 1, 2, … of two words each, of which some are read; the second takes the file over.
class RingCopyTest : public testing::TestWithParam<unsigned> {
 protected:
  void write(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t time = first; time <= last; ++time) first_.append(0, make::begin(time, 1));
  }
  /// The copy is of what the ring holds now.
  void copy() { first_.save(copy_path_); }
  void take_over(CheckedReader& reader) {
    RingFileBuilder second(path_, {.domains = 2, .words_log2 = GetParam()});
    second.append(0, make::begin(1000, 2));
    second.set_name(3, "second");
    reader.reader().seal(500);
    while (!reader.poll().complete) {
    }
    EXPECT_TRUE(reader.reader().taken_over());
  }
  bool go_on(CheckedReader& reader) const {
    return reader.reader().go_on_in(::open(copy_path_.c_str(), O_RDONLY | O_CLOEXEC)).has_value();
  }
  /// The rest of what there is.
  static Times rest_of(CheckedReader& reader) {
    while (!reader.poll().complete) {
    }
    reader.finish(2000);
    EXPECT_EQ(reader.words().unread, 0u);
    return reader.take_times();
  }

  const test::TempDir dir_;
  const std::filesystem::path path_ = dir_ / "1.events", copy_path_ = dir_ / "copy";
  RingFileBuilder first_{path_, {.domains = 2, .words_log2 = 6}};
};

TEST_P(RingCopyTest, GoesOnWhereTheFileWasLeft) {
  write(1, 3);
  CheckedReader reader(path_, {.one_program = true});
  reader.poll();
  EXPECT_EQ(reader.take_times(), (Times{1, 2, 3}));
  write(4, 8);
  first_.append(1, make::begin(7, 1));
  copy();
  take_over(reader);
  ASSERT_TRUE(go_on(reader));
  EXPECT_FALSE(reader.reader().taken_over());
  EXPECT_FALSE(reader.reader().truncated());
  EXPECT_EQ(rest_of(reader), (Times{4, 5, 6, 7, 8, 7}));
  EXPECT_EQ(reader.words().written, 18u);
  EXPECT_EQ(reader.words().delivered, 18u);
}

TEST_P(RingCopyTest, WhatWasSeenAndNotReadIsNotLostYet) {
  write(1, 20);
  CheckedReader reader(path_, {.one_program = true});
  reader.poll_domain(0, 1);
  reader.take_seen();
  write(21, 23);
  copy();
  take_over(reader);
  ASSERT_TRUE(go_on(reader));
  const Times rest = rest_of(reader);
  ASSERT_FALSE(rest.empty());
  EXPECT_EQ(rest.back(), 23u);
  EXPECT_EQ(reader.words().delivered, 46u);
  EXPECT_EQ(reader.words().lost, 0u);
}

TEST_P(RingCopyTest, WhatTheCopyLacksIsLost) {
  write(1, 2);
  CheckedReader reader(path_, {.one_program = true});
  reader.poll();
  reader.take_seen();
  write(3, 4);
  copy();
  write(5, 9);
  take_over(reader);
  ASSERT_TRUE(go_on(reader));
  reader.reader().expect(0, 18);
  EXPECT_EQ(rest_of(reader), (Times{3, 4}));
  EXPECT_EQ(reader.words().written, 18u);
  EXPECT_EQ(reader.words().lost, 10u);
}

TEST_P(RingCopyTest, MayHoldLessThanWasRead) {
  write(1, 2);
  copy();
  write(3, 9);
  CheckedReader reader(path_, {.one_program = true});
  reader.poll();
  EXPECT_EQ(reader.take_times().size(), 9u);
  write(10, 11);
  take_over(reader);
  ASSERT_TRUE(go_on(reader));
  reader.reader().expect(0, 22);
  EXPECT_EQ(rest_of(reader), Times{});
  EXPECT_EQ(reader.words().delivered, 18u);
  EXPECT_EQ(reader.words().lost, 4u);
  EXPECT_FALSE(reader.reader().taken_over());
}

TEST_P(RingCopyTest, WhatWasOverwrittenBeforeIsLost) {
  write(1, 2);
  CheckedReader reader(path_, {.one_program = true});
  reader.poll();
  reader.take_seen();
  write(3, 50);
  copy();
  const std::uint64_t head = first_.head(0), tail = first_.tail(0);
  take_over(reader);
  ASSERT_TRUE(go_on(reader));
  const Times rest = rest_of(reader);
  ASSERT_FALSE(rest.empty());
  EXPECT_EQ(rest.back(), 50u);
  EXPECT_EQ(reader.words().written, tail);
  EXPECT_EQ(reader.words().lost, head - 4);
}

TEST_P(RingCopyTest, TellsTheNamesOfItsProgram) {
  first_.set_name(3, "first");
  write(1, 2);
  copy();
  CheckedReader reader(path_, {.one_program = true});
  take_over(reader);
  ASSERT_TRUE(go_on(reader));
  EXPECT_EQ(reader.reader().user_event_name(3), "first");
}

/// What was read may be shown when the next program has the file already, and before the end of this one is known.
TEST_P(RingCopyTest, NamesAreReadWithTheEvents) {
  first_.set_name(0, "zeroth");
  first_.set_name(1, "first");
  write(1, 3);
  CheckedReader reader(path_, {.one_program = true});
  reader.poll();
  RingFileBuilder second(path_, {.domains = 2, .words_log2 = GetParam()});
  second.append(0, make::begin(1000, 2));
  second.set_name(0, "another's");
  reader.poll();
  EXPECT_TRUE(reader.reader().taken_over());
  EXPECT_EQ(reader.reader().user_event_name(0), "zeroth");
  EXPECT_EQ(reader.reader().user_event_name(1), "first");
  EXPECT_EQ(rest_of(reader), (Times{1, 2, 3}));
}

/// A program was seen with half of a name in place: it lost its cpu as it touched the page.
TEST_P(RingCopyTest, NamesThatWereBeingWrittenAreReadAgain) {
  first_.set_name(0, "zeroth");
  first_.set_name(1, "fi");
  write(1, 1);
  CheckedReader reader(path_, {.one_program = true});
  reader.poll();
  first_.set_name(1, "first");
  write(2, 2);
  reader.poll();
  EXPECT_EQ(reader.reader().user_event_name(0), "zeroth");
  EXPECT_EQ(reader.reader().user_event_name(1), "first");
}

TEST_P(RingCopyTest, OfAnotherRingIsRefused) {
  write(1, 2);
  CheckedReader reader(path_, {.one_program = true});
  RingFileBuilder({.domains = 2, .words_log2 = 7}).save(copy_path_);
  write(3, 4);
  reader.poll_domain(1);
  take_over(reader);
  EXPECT_FALSE(go_on(reader));
  EXPECT_TRUE(reader.reader().taken_over());
  EXPECT_EQ(rest_of(reader), Times{});
  EXPECT_FALSE(reader.reader().go_on_in(-1));
}

INSTANTIATE_TEST_SUITE_P(SuccessorsSize, RingCopyTest, testing::Values(6u, 8u));

}  // namespace
}  // namespace rtev
