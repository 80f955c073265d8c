// SPDX-License-Identifier: MIT
// Traces in pieces, traces that are cut, and tables that change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "unit/fxt/trace_reading.hpp"

namespace rtev::test {
namespace {

using testing::ElementsAre;

/// Records of many sizes up to the largest.
TraceWords varied() {
  TraceWords trace =
      after_prelude({0x0021, 1'000'000, 0x0002'0001'01'0'2'002'4, 5, 0x0002'0001'01'0'3'002'4, 6, 0x000'0'8005'01'003'7,
                     5, stream_word("hello"), 0xffff'ffff'ffff'001'e, 0x0002'0001'01'1'1'005'4, 5, 0x0003'002'3, 8, 9});
  TraceWords large(4095);  // an instant with a blob
  std::iota(large.begin(), large.end(), 0);
  constexpr std::uint64_t payload = 4092 * 8 - 1;
  large[0] = 0x0002'0001'01'1'0'fff'4;
  large[2] = payload << 32 | 0x0003'ffd'a;
  large.back() = 0;
  trace.insert(trace.end(), large.begin(), large.end());
  trace.insert(trace.end(), {0x0002'0001'01'0'2'002'4, 7});
  return trace;
}

TEST(FxtReaderStream, PiecesOfAnySizeGiveTheSame) {
  const auto bytes = file_bytes(varied());
  const Reading whole = read_trace(bytes);
  ASSERT_EQ(whole.error, "");
  ASSERT_EQ(whole.records.size(), 12u);
  for (const std::size_t piece : {1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 4096, 32'759, 32'760, 32'761}) {
    EXPECT_EQ(read_trace(bytes, piece), whole) << piece;
  }
}

TEST(FxtReaderStream, ErrorsAreTheSameInPiecesOfAnySize) {
  TraceWords words = varied();
  words.insert(words.end(), {0x0002'0004'01'0'2'002'4, 5, 0x0002'0001'01'0'2'002'4, 5});
  const auto bytes = file_bytes(words);
  const Reading whole = read_trace(bytes);
  EXPECT_EQ(whole.records.size(), 12u);
  EXPECT_EQ(whole.error, "bad trace record: at byte " + std::to_string(varied().size() * 8) +
                             ", event: its category is string 4, which is not defined");
  for (const std::size_t piece : {1, 7, 8, 9, 4096}) EXPECT_EQ(read_trace(bytes, piece), whole) << piece;
}

TEST(FxtReaderStream, EveryCutIsReportedAndKeepsTheRecordsBefore) {
  TraceWords words = varied();
  words.erase(words.begin() + 25, words.end());  // without the large record
  const auto bytes = file_bytes(words);
  const Reading whole = read_trace(bytes);
  ASSERT_EQ(whole.error, "");
  std::vector<std::uint64_t> ends = whole.offsets;  // a record ends where the next one begins
  ends.push_back(bytes.size());
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    for (const std::size_t piece : {SIZE_MAX, std::size_t{5}}) {
      const Reading reading = read_trace(std::span(bytes).first(size), piece);
      ASSERT_EQ(reading.error, "") << size;
      const auto records = std::ranges::count_if(ends, [&](std::uint64_t end) { return end > 8 && end <= size; });
      ASSERT_EQ(std::ssize(reading.records), records) << size;
      EXPECT_EQ(reading.end.offset, size < 8 ? 0 : ends[static_cast<std::size_t>(records)]) << size;
      EXPECT_EQ(reading.end.bytes_left, size - reading.end.offset);
      EXPECT_EQ(reading.end.cut(), reading.end.offset != size);
    }
  }
}

TEST(FxtReaderStream, HeaderIsCheckedBeforeTheRestArrives) {
  FxtReader reader;
  EXPECT_TRUE(reader.feed(file_bytes({fxt::magic}), [](const fxt::Record&) {}));
  const auto fed = reader.feed(file_bytes({0x0'00001000'f}), [](const fxt::Record&) {});
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().what, "bad trace record");
  EXPECT_EQ(fed.error().why, "at byte 8, large record: large records are not supported");
}

TEST(FxtReaderStream, ErrorsArePermanent) {
  FxtReader reader;
  const auto none = [](const fxt::Record&) { ADD_FAILURE(); };
  const std::string why = reader.feed(file_bytes({7}), none).error().why;
  const auto again = reader.feed(file_bytes(prelude()), none);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().why, why);
  ASSERT_FALSE(reader.finish());
  EXPECT_EQ(reader.finish().error().why, why);
}

TEST(FxtReaderStream, StopsWhenTheConsumerReturnsFalse) {
  FxtReader reader;
  int records = 0;
  const auto two = [&](const fxt::Record&) { return ++records < 2; };
  const auto bytes = file_bytes(prelude());
  EXPECT_EQ(reader.feed(std::span(bytes).first(20), two), FxtReader::Fed::all);
  EXPECT_EQ(reader.feed(std::span(bytes).subspan(20), two), FxtReader::Fed::stopped);
  EXPECT_EQ(records, 2);
  EXPECT_EQ(reader.feed(file_bytes({0}), two), FxtReader::Fed::stopped);
  EXPECT_EQ(records, 2);
  ASSERT_TRUE(reader.finish());
  EXPECT_EQ(reader.finish()->offset, 40u);
  EXPECT_FALSE(reader.finish()->cut());
}

TEST(FxtReaderStream, ExceptionOfTheConsumerEndsTheReading) {
  FxtReader reader;
  const auto bytes = file_bytes(prelude());
  EXPECT_THROW((void)reader.feed(bytes, [](const fxt::Record&) { throw std::runtime_error("full"); }),
               std::runtime_error);
  EXPECT_EQ(reader.feed(bytes, [](const fxt::Record&) { ADD_FAILURE(); }), FxtReader::Fed::stopped);
}

TEST(FxtReaderStream, EmptyPiecesAreAllowed) {
  FxtReader reader;
  EXPECT_EQ(reader.feed({}, [](const fxt::Record&) {}), FxtReader::Fed::all);
  EXPECT_EQ(reader.feed(file_bytes({fxt::magic}), [](const fxt::Record&) {}), FxtReader::Fed::all);
  EXPECT_EQ(reader.feed({}, [](const fxt::Record&) {}), FxtReader::Fed::all);
  EXPECT_EQ(reader.finish()->offset, 8u);
}

TEST(FxtReaderStream, SlotsKeepTheirMeaningUntilReplaced) {
  const Reading reading = read_trace(file_bytes(after_prelude(
      {0x0002'0001'01'0'2'002'4, 5, 0x0000'000a'0002'003'2, stream_word("and then"), stream_word(" m"), 0x01'003'3, 1,
       2, 0x0002'0001'01'0'2'002'4, 6, 0x0000'0000'0002'001'2, 0x0002'0001'01'0'2'002'4, 7})));
  ASSERT_EQ(reading.error, "");
  EXPECT_EQ(reading.records[4], "event duration begin t=5 thread=100/101#1 category=\"gc\"#1 name=\"minor\"#2 extra=0");
  EXPECT_EQ(reading.records[7],
            "event duration begin t=6 thread=1/2#1 category=\"gc\"#1 name=\"and then m\"#2 extra=0");
  EXPECT_EQ(reading.records[9], "event duration begin t=7 thread=1/2#1 category=\"gc\"#1 name=\"\"#2 extra=0");
}

TEST(FxtReaderStream, ProviderRecordResetsTheTables) {
  constexpr std::uint64_t event = 0x0002'0001'01'0'2'002'4, seven = 0x0'00'00000007'1'001'0;
  const auto bytes = file_bytes(after_prelude({event, 5,                                                    //
                                               seven, 0x0021, 1000, 0x000'00000007'2'001'0,                 //
                                               0x0000'0001'0001'002'2, stream_word("c"),                    //
                                               0x0000'0001'0002'002'2, stream_word("d"), 0x01'003'3, 7, 8,  //
                                               event, 6}));
  FxtReader reader;
  std::vector<std::string> events;
  ASSERT_TRUE(reader.feed(bytes, [&](const fxt::Record& record) {
    if (const auto* it = std::get_if<fxt::parsed::EventRecord>(&record)) {
      events.push_back(std::to_string(reader.provider()) + ": " + std::string(it->name.text) + " " +
                       std::to_string(it->thread.tid) + " at " + std::to_string(reader.nanoseconds(it->time)));
    }
  }));
  EXPECT_THAT(events, ElementsAre("0: minor 101 at 5", "7: d 8 at 6000000"));
  EXPECT_EQ(reader.ticks_per_second(), 1000u);
  ASSERT_TRUE(reader.feed(file_bytes({seven}), [](const fxt::Record&) {}));
  EXPECT_EQ(reader.ticks_per_second(), 1'000'000'000u);
  EXPECT_FALSE(reader.feed(file_bytes({event, 9}), [](const fxt::Record&) {}));
}

TEST(FxtReaderStream, CanBeMovedBetweenPieces) {
  const auto bytes = file_bytes(after_prelude({0x0002'0001'01'0'2'002'4, 5}));
  FxtReader first;
  ASSERT_TRUE(first.feed(std::span(bytes).first(85), [](const fxt::Record&) {}));
  FxtReader second = std::move(first);
  int records = 0;
  ASSERT_TRUE(second.feed(std::span(bytes).subspan(85), [&](const fxt::Record&) { ++records; }));
  EXPECT_EQ(records, 1);
}

TEST(FxtTicks, AsNanoseconds) {
  using fxt::to_nanoseconds;
  EXPECT_EQ(to_nanoseconds(UINT64_MAX, 1'000'000'000), UINT64_MAX);
  EXPECT_EQ(to_nanoseconds(2'400'000'000'000, 2'400'000'000), 1'000'000'000'000u);  // where viewers are 372 ns early
  EXPECT_EQ(to_nanoseconds(7, 3'000'000'000), 2u);
  EXPECT_EQ(to_nanoseconds(5, 1), 5'000'000'000u);
  EXPECT_EQ(to_nanoseconds(UINT64_MAX, 2'000'000'000), UINT64_MAX / 2);
  EXPECT_EQ(to_nanoseconds(UINT64_MAX, UINT64_MAX), 1'000'000'000u);
  EXPECT_EQ(to_nanoseconds(UINT64_MAX, 1), UINT64_MAX);
  EXPECT_EQ(to_nanoseconds(18'446'744'074, 1), UINT64_MAX);
  EXPECT_EQ(to_nanoseconds(18'446'744'073, 1), 18'446'744'073'000'000'000u);
}

}  // namespace
}  // namespace rtev::test
