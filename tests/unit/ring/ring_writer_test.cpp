// SPDX-License-Identifier: MIT
// RingReader reads what RingWriter writes: every kind, every size, every place in the ring.
#include "rtev/ring_writer.hpp"

#include <array>
#include <limits>
#include <numeric>
#include <ranges>
#include <tuple>

#include "unit/ring/writer_fixture.hpp"

namespace rtev::test {
namespace {

using Format = RingWriter::Format;

class RingWriterTest : public WriterTest {
 protected:
  /// Moves a fresh ring's tail to `position` with messages of two and three words.
  static void go_to(RingWriter& writer, std::uint64_t position) {
    DomainWriter events = writer.domain(0);
    std::uint64_t missing = position - writer.words_written(0);
    for (; missing % 2 != 0; missing -= 3) events.counter(Counter{1}, 0);
    for (; missing > 0; missing -= 2) events.begin(Phase{1});
    ASSERT_EQ(writer.words_written(0), position);
  }
};

class EveryFormat : public RingWriterTest, public testing::WithParamInterface<std::tuple<Format, Family>> {};

TEST_P(EveryFormat, EveryRuntimeEvent) {
  const auto [format, family] = GetParam();
  auto options = small();
  options.format = format;
  options.family = family;
  RingWriter writer = make(options);
  const Phase minor = find_phase(family, "minor").value();
  const auto minor_id = std::to_string(family == Family::before_5_3 ? 10 : 11);
  const Counter allocated = find_counter(family, "minor_allocated").value();
  std::array<std::uint64_t, alloc_bucket_count> buckets;
  std::iota(buckets.begin(), buckets.end(), 100);

  DomainWriter events = writer.domain(1);
  EXPECT_EQ(events.lifecycle(Lifecycle::domain_spawn, 77), WriteStatus::written);
  EXPECT_EQ(events.begin(minor), WriteStatus::written);
  EXPECT_EQ(events.counter(allocated, 4096), WriteStatus::written);
  EXPECT_EQ(events.counter(allocated, UINT64_MAX), WriteStatus::written);
  EXPECT_EQ(events.end(minor), WriteStatus::written);
  EXPECT_EQ(events.alloc(buckets), WriteStatus::written);
  EXPECT_EQ(events.lifecycle(Lifecycle::fork_parent, -1), WriteStatus::written);
  EXPECT_EQ(events.lifecycle(Lifecycle::domain_terminate, INT64_MIN), WriteStatus::written);

  CheckedReader reader(path());
  reader.poll();
  std::vector<Seen> seen = reader.take_seen();
  ASSERT_EQ(seen.size(), 9u);
  EXPECT_EQ(line_of(seen[0]), ring_start());
  EXPECT_EQ(seen[0].domain(), 0u);
  seen.erase(seen.begin());
  Lines lines;
  for (const Seen& each : seen) {
    EXPECT_EQ(each.domain(), 1u);
    EXPECT_EQ(each.event.time, lines.size() + 2);
    lines.push_back(line_of(each));
  }
  EXPECT_EQ(lines, (Lines{"lifecycle 6 77", "begin " + minor_id + " 0", "counter 5 4096", "counter 5 -1",
                          "end " + minor_id + " 0", "alloc 0 160 bytes", "lifecycle 4 -1",
                          "lifecycle 7 " + std::to_string(INT64_MIN)}));
  EXPECT_EQ(seen[3].event.value, UINT64_MAX);
  EXPECT_EQ(seen[5].payload, std::string(reinterpret_cast<const char*>(buckets.data()), sizeof buckets));
  EXPECT_EQ(writer.words_written(0), 3u);
  EXPECT_EQ(writer.words_written(1), 3u + 2 + 3 + 3 + 2 + 22 + 3 + 3);
  EXPECT_EQ(reader.reader().accounting(1).delivered, writer.words_written(1));
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat,
                         testing::Combine(testing::Values(Format::before_5_1, Format::since_5_1),
                                          testing::Values(Family::before_5_3, Family::since_5_3)));

TEST_F(RingWriterTest, EveryUserEvent) {
  RingWriter writer = make(small());
  const UserEvent tick = add(writer, "tick", UserType::unit), number = add(writer, "number", UserType::integer),
                  request = add(writer, "request", UserType::span), blob = add(writer, "blob", UserType::custom);
  DomainWriter events = writer.domain(0);
  events.write(tick);
  events.begin(request);
  constexpr auto min = std::numeric_limits<std::int32_t>::min(), max = std::numeric_limits<std::int32_t>::max();
  for (const std::int32_t value : {0, 1, -1, min, max}) events.write(number, value);
  events.write(blob, bytes_of("hello"));
  events.write(blob, bytes_of(""));
  events.end(request);
  EXPECT_EQ(lines_of(path(), 0), (Lines{ring_start(), "user_unit 0 0", "user_begin 2 0", "user_int 1 0", "user_int 1 1",
                                        "user_int 1 -1", "user_int 1 -2147483648", "user_int 1 2147483647",
                                        "user_custom 3 'hello'", "user_custom 3 ''", "user_end 2 0"}));
}

TEST_F(RingWriterTest, CustomEventsOfEverySize) {
  auto options = small();
  options.log2_words = 9;
  RingWriter writer = make(options);
  const UserEvent blob = add(writer, "blob", UserType::custom), tick = add(writer, "tick", UserType::unit);
  DomainWriter events = writer.domain(0);
  CheckedReader reader(path());
  reader.poll();
  reader.take_seen();
  std::string text;
  for (std::size_t size = 0; size <= max_custom_bytes; ++size) {
    // Bytes that show their place and are never a valid count of unused bytes.
    std::string bytes = text;
    text.push_back(static_cast<char>(size * 37 | 0x80));
    ASSERT_EQ(events.write(blob, bytes_of(bytes)), WriteStatus::written) << size;
    events.write(tick);
    reader.poll();
    const auto seen = reader.take_seen();
    ASSERT_EQ(seen.size(), 2u) << size;
    ASSERT_EQ(seen[0].payload, bytes) << size;
  }
  EXPECT_EQ(reader.words().delivered, writer.words_written(0));
  EXPECT_EQ(text.size(), max_custom_bytes + 1);
  EXPECT_EQ(events.write(blob, bytes_of(text)), WriteStatus::too_large);
  EXPECT_EQ(reader.poll().delivered_words, 0u);
}

TEST_F(RingWriterTest, PaddingOfEverySize) {
  auto options = small();
  options.log2_words = 9;
  const std::string largest(max_custom_bytes, 'x');
  for (std::uint64_t to_end = 1; to_end <= 132; ++to_end) {
    RingWriter writer = make(options);
    const UserEvent blob = add(writer, "blob", UserType::custom);
    go_to(writer, 512 - to_end);
    ASSERT_EQ(writer.domain(0).write(blob, bytes_of(largest)), WriteStatus::written);
    // Of 131 words: the rest before the physical end becomes padding, unless the message fits.
    ASSERT_EQ(writer.words_written(0), to_end >= 131 ? 512 - to_end + 131 : 512 + 131) << to_end;
    CheckedReader reader(path());
    reader.poll();
    ASSERT_EQ(reader.words().written, writer.words_written(0));
    ASSERT_EQ(reader.words().corrupt, 0u);
    ASSERT_EQ(reader.seen().back().payload, largest);
  }
}

TEST_F(RingWriterTest, OldestEventsAreOverwritten) {
  RingWriter writer = make(small());
  DomainWriter events = writer.domain(0);
  std::uint64_t last = 0;
  for (; last < 10'000; ++last) {
    ASSERT_EQ(events.counter(Counter{3}, last), WriteStatus::written);
    CheckedReader reader(path(), {.history = RingReader::History::deliver});
    const Accounting words = reader.words();
    ASSERT_EQ(words.written, writer.words_written(0));
    ASSERT_LT(words.unread, 256u);
    if (last > 100) {
      ASSERT_GE(words.unread, 256u - 3 - 3) << "no more is overwritten than necessary";
    }
    if (last % 97 != 0) continue;
    reader.poll();
    ASSERT_EQ(reader.words().corrupt, 0u);
    std::uint64_t expected = last;
    for (const Seen& seen : std::ranges::reverse_view(reader.seen())) {
      if (seen.event.kind != EventKind::counter) continue;
      ASSERT_EQ(seen.event.value, expected--);
    }
  }
}

TEST_F(RingWriterTest, TooLargeMessagesAreRefusedAtAnyPosition) {
  auto options = small();
  options.log2_words = 6;
  RingWriter writer = make(options);
  const UserEvent blob = add(writer, "blob", UserType::custom);
  DomainWriter events = writer.domain(0);
  const std::string largest(487, 'x');  // 63 words: a ring of 64 is full with one less
  std::array<std::uint64_t, alloc_bucket_count> buckets{};
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t before = writer.words_written(0);
    ASSERT_EQ(events.write(blob, bytes_of(std::string(488, 'x'))), WriteStatus::too_large);
    ASSERT_EQ(events.write(blob, bytes_of(std::string(max_custom_bytes, 'x'))), WriteStatus::too_large);
    ASSERT_EQ(writer.words_written(0), before);
    ASSERT_EQ(events.write(blob, bytes_of(largest)), WriteStatus::written);
    ASSERT_EQ(lines_of(path(), 0).back(), "user_custom 0 '" + largest + "'");
    ASSERT_EQ(events.alloc(buckets), WriteStatus::written);
    ASSERT_EQ(events.begin(Phase{1}), WriteStatus::written);
    ASSERT_EQ(lines_of(path(), 0).back(), "begin 1 0");
  }
}

TEST_F(RingWriterTest, IdsHaveThirteenBits) {
  RingWriter writer = make(small());
  DomainWriter events = writer.domain(0);
  EXPECT_EQ(events.begin(Phase{8191}), WriteStatus::written);
  EXPECT_EQ(events.counter(Counter{8191}, 1), WriteStatus::written);
  const std::uint64_t before = writer.words_written(0);
  EXPECT_EQ(events.begin(Phase{8192}), WriteStatus::bad_id);
  EXPECT_EQ(events.end(Phase{65535}), WriteStatus::bad_id);
  EXPECT_EQ(events.counter(Counter{8192}, 1), WriteStatus::bad_id);
  EXPECT_EQ(events.lifecycle(static_cast<Lifecycle>(8192), 1), WriteStatus::bad_id);
  EXPECT_EQ(events.write(UserEvent{0, UserType::unit}), WriteStatus::bad_id) << "not registered";
  EXPECT_EQ(events.write(UserEvent{65535, UserType::unit}), WriteStatus::bad_id);
  EXPECT_EQ(writer.words_written(0), before);
  EXPECT_EQ(lines_of(path(), 0), (Lines{ring_start(), "begin 8191 0", "counter 8191 1"}));
}

TEST_F(RingWriterTest, LifecycleOfTheRingIsReservedForTheWriter) {
  RingWriter writer = make(small());
  for (const Lifecycle what :
       {Lifecycle::ring_start, Lifecycle::ring_stop, Lifecycle::ring_pause, Lifecycle::ring_resume})
    EXPECT_EQ(writer.domain(0).lifecycle(what, 1), WriteStatus::bad_id);
  EXPECT_EQ(lines_of(path(), 0), Lines{ring_start()});
}

TEST_F(RingWriterTest, TypesAreChecked) {
  RingWriter writer = make(small());
  const UserType types[] = {UserType::unit, UserType::integer, UserType::span, UserType::custom};
  DomainWriter events = writer.domain(0);
  for (const UserType type : types) {
    const UserEvent event = add(writer, std::to_string(static_cast<int>(type)), type);
    const auto expected = [&](UserType right) {
      return type == right ? WriteStatus::written : WriteStatus::wrong_type;
    };
    EXPECT_EQ(events.write(event), expected(UserType::unit));
    EXPECT_EQ(events.write(event, 5), expected(UserType::integer));
    EXPECT_EQ(events.begin(event), expected(UserType::span));
    EXPECT_EQ(events.end(event), expected(UserType::span));
    EXPECT_EQ(events.write(event, bytes_of("x")), expected(UserType::custom));
  }
  EXPECT_EQ(lines_of(path(), 0).size(), 1u + 5);
}

TEST_F(RingWriterTest, EveryStatusHasAText) {
  std::vector<std::string_view> texts;
  for (const auto status :
       {WriteStatus::written, WriteStatus::off, WriteStatus::too_large, WriteStatus::wrong_type, WriteStatus::bad_id}) {
    EXPECT_EQ(std::ranges::count(texts, to_string(status)), 0);
    texts.push_back(to_string(status));
  }
}

TEST_F(RingWriterTest, InvalidDomainsThrow) {
  RingWriter writer = make(small());
  EXPECT_EQ(writer.domains(), 2u);
  EXPECT_THROW(writer.domain(2), std::out_of_range);
  EXPECT_THROW(writer.words_written(2), std::out_of_range);
  EXPECT_THROW(writer.pause(2), std::out_of_range);
  EXPECT_THROW(writer.stop(UINT32_MAX), std::out_of_range);
}

}  // namespace
}  // namespace rtev::test
