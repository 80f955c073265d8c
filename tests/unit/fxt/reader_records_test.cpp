// SPDX-License-Identifier: MIT
// Every record and every type of argument, from words as the format's reference describes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/fxt/trace_reading.hpp"

namespace rtev::test {
namespace {

using testing::ElementsAre;

/// The only record after the prelude.
std::string last_record(std::initializer_list<std::uint64_t> words) {
  const auto bytes = file_bytes(after_prelude(words));
  const Reading reading = read_trace(bytes);
  EXPECT_EQ(reading.error, "");
  EXPECT_EQ(reading.end.offset, bytes.size());
  EXPECT_FALSE(reading.end.cut());
  if (reading.records.size() != 5) return "records: " + std::to_string(reading.records.size());
  EXPECT_EQ(reading.offsets.back(), prelude_bytes);
  return reading.records.back();
}

TEST(FxtReaderRecords, Prelude) {
  const Reading reading = read_trace(file_bytes(prelude()));
  EXPECT_THAT(reading.records,
              ElementsAre("string 1 \"gc\"", "string 2 \"minor\"", "string 3 \"n\"", "thread 1 100/101"));
  EXPECT_THAT(reading.offsets, ElementsAre(8, 24, 40, 56));
  EXPECT_EQ(reading.end.offset, prelude_bytes);
}

TEST(FxtReaderRecords, Metadata) {
  EXPECT_EQ(last_record({0x0'04'89abcdef'1'002'0, stream_word("rtev")}), "provider 2309737967 \"rtev\"");
  EXPECT_EQ(last_record({0x0'00'00000007'1'001'0}), "provider 7 \"\"");
  EXPECT_EQ(last_record({0x000'00000000'2'001'0}), "section 0");
  EXPECT_EQ(last_record({0x00'0'00000000'3'001'0}), "buffer full 0");
}

TEST(FxtReaderRecords, Initialization) {
  EXPECT_EQ(last_record({0x0021, 1'000'000'000}), "initialization 1000000000");
  EXPECT_EQ(last_record({0x0021, UINT64_MAX}), "initialization 18446744073709551615");
  EXPECT_EQ(last_record({0x0041, 1000, 5, 6}), "initialization 1000 base 5 wall 6");
}

TEST(FxtReaderRecords, Strings) {
  EXPECT_EQ(last_record({0x0000'0008'7fff'002'2, stream_word("12345678")}), "string 32767 \"12345678\"");
  EXPECT_EQ(last_record({0x0000'0009'0001'003'2, stream_word("12345678"), stream_word("9")}), "string 1 \"123456789\"");
  EXPECT_EQ(last_record({0x0000'0000'0004'001'2}), "string 4 \"\"");
}

TEST(FxtReaderRecords, Threads) {
  EXPECT_EQ(last_record({0xff'003'3, 1, UINT64_MAX}), "thread 255 1/18446744073709551615");
}

TEST(FxtReaderRecords, EventsOfAllTypes) {
  const auto begins = [](std::string_view type) {
    return "event " + std::string(type) + " t=5 thread=100/101#1 category=\"gc\"#1 name=\"minor\"#2 extra=";
  };
  EXPECT_EQ(last_record({0x0002'0001'01'0'0'002'4, 5}), begins("instant") + "0");
  EXPECT_EQ(last_record({0x0002'0001'01'0'1'003'4, 5, 77}), begins("counter") + "77");
  EXPECT_EQ(last_record({0x0002'0001'01'0'2'002'4, 5}), begins("duration begin") + "0");
  EXPECT_EQ(last_record({0x0002'0001'01'0'3'002'4, 5}), begins("duration end") + "0");
  EXPECT_EQ(last_record({0x0002'0001'01'0'4'003'4, 5, 9}), begins("duration complete") + "9");
  EXPECT_EQ(last_record({0x0002'0001'01'0'5'003'4, 5, 1}), begins("async begin") + "1");
  EXPECT_EQ(last_record({0x0002'0001'01'0'6'003'4, 5, 2}), begins("async instant") + "2");
  EXPECT_EQ(last_record({0x0002'0001'01'0'7'003'4, 5, 3}), begins("async end") + "3");
  EXPECT_EQ(last_record({0x0002'0001'01'0'8'003'4, 5, 4}), begins("flow begin") + "4");
  EXPECT_EQ(last_record({0x0002'0001'01'0'9'003'4, 5, 5}), begins("flow step") + "5");
  EXPECT_EQ(last_record({0x0002'0001'01'0'a'003'4, 5, UINT64_MAX}), begins("flow end") + "18446744073709551615");
}

TEST(FxtReaderRecords, EventWithEverythingInline) {
  // Thread, category, name, an argument with its name and its value, and the word at the end.
  EXPECT_EQ(last_record({0x8009'8002'00'1'1'00b'4, 5, 7, 8, stream_word("ab"), stream_word("12345678"),
                         stream_word("9"), 0x0000'8001'8003'003'6, stream_word("key"), stream_word("v"), 42}),
            "event counter t=5 thread=7/8! category=\"ab\"! name=\"123456789\"! (\"key\"! string \"v\"!) extra=42");
}

TEST(FxtReaderRecords, EmptyReferences) {
  EXPECT_EQ(last_record({0x0000'0000'01'0'2'002'4, 5}),
            "event duration begin t=5 thread=100/101#1 category=\"\" name=\"\" extra=0");
  EXPECT_EQ(last_record({0x8000'0000'01'0'2'002'4, 5}),
            "event duration begin t=5 thread=100/101#1 category=\"\" name=\"\"! extra=0");
}

TEST(FxtReaderRecords, Objects) {
  EXPECT_EQ(last_record({0x000'0'0002'01'002'6, 0xdead}), "userspace object 57005 process=100/101#1 name=\"minor\"#2");
  EXPECT_EQ(last_record({0x000'1'8001'00'005'6, 0xdead, 100, stream_word("o"), 0x7'0003'001'1}),
            "userspace object 57005 process=100/0! name=\"o\"! (\"n\"#3 int32 7)");
  EXPECT_EQ(last_record({0x000'0'0001'01'002'7, 100}), "kernel object 100 type=1 name=\"gc\"#1");
  EXPECT_EQ(last_record({0x000'1'8002'02'005'7, 101, stream_word("d0"), 0x0003'002'8, 100}),
            "kernel object 101 type=2 name=\"d0\"! (\"n\"#3 koid 100)");
}

TEST(FxtReaderRecords, Scheduling) {
  EXPECT_EQ(last_record({0x1'00000'3'ffff'0'004'8, 5, 101, 0}), "switch t=5 cpu=65535 out=101 state=3 in=0");
  EXPECT_EQ(last_record({0x1'00000'5'0002'1'005'8, 5, 101, 0, 0x80000000'0003'001'1}),
            "switch t=5 cpu=2 out=101 state=5 in=0 (\"n\"#3 int32 -2147483648)");
  EXPECT_EQ(last_record({0x2'000000'0007'0'003'8, 5, 101}), "wakeup t=5 cpu=7 tid=101");
  EXPECT_EQ(last_record({0x2'000000'0007'1'005'8, 5, 101, 0x0003'002'8, 9}),
            "wakeup t=5 cpu=7 tid=101 (\"n\"#3 koid 9)");
}

TEST(FxtReaderRecords, UnknownOnesAreSkipped) {
  EXPECT_EQ(last_record({0xffff'ffff'ffff'002'a, UINT64_MAX}), "unknown 10 of 16 bytes");
  EXPECT_EQ(last_record({0xffff'ffff'ffff'001'e}), "unknown 14 of 8 bytes");
  // Blobs, logs.
  EXPECT_EQ(last_record({0x00'01'0000'8001'002'5, stream_word("x")}), "unknown 5 of 16 bytes");
  EXPECT_EQ(last_record({0x000000'00'0000'004'9, 5, 1, 2}), "unknown 9 of 32 bytes");
  // Subtypes of metadata, provider events, trace info, event and scheduling records; a legacy switch.
  EXPECT_EQ(last_record({0x5'001'0}), "unknown 0 of 8 bytes");
  EXPECT_EQ(last_record({0x00'1'00000000'3'001'0}), "unknown 0 of 8 bytes");
  EXPECT_EQ(last_record({0x1'4'001'0}), "unknown 0 of 8 bytes");
  EXPECT_EQ(last_record({0x0002'0001'01'0'b'002'4, 5}), "unknown 4 of 16 bytes");
  EXPECT_EQ(last_record({0x3'000'0000'0000'002'8, 5}), "unknown 8 of 16 bytes");
  EXPECT_EQ(last_record({0x0'14'0a'01'01'3'07'002'8, 5}), "unknown 8 of 16 bytes");
}

/// The argument of an instant, whose words these are.
std::string argument(std::vector<std::uint64_t> words) {
  TraceWords trace = after_prelude({0x0002'0001'01'1'0'000'4 | (2 + words.size()) << 4, 5});
  trace.insert(trace.end(), words.begin(), words.end());
  const Reading reading = read_trace(file_bytes(trace));
  EXPECT_EQ(reading.error, "");
  if (reading.records.size() != 5) return "records: " + std::to_string(reading.records.size());
  const std::string& event = reading.records.back();
  const std::size_t begin = event.find('(');
  return event.substr(begin, event.rfind(')') + 1 - begin);
}

TEST(FxtReaderArguments, AllTypes) {
  EXPECT_EQ(argument({0xffffffff'0003'001'1}), "(\"n\"#3 int32 -1)");
  EXPECT_EQ(argument({0xffffffff'0003'001'2}), "(\"n\"#3 uint32 4294967295)");
  EXPECT_EQ(argument({0x0003'002'3, 0x8000'0000'0000'0000}), "(\"n\"#3 int64 -9223372036854775808)");
  EXPECT_EQ(argument({0x0003'002'4, UINT64_MAX}), "(\"n\"#3 uint64 18446744073709551615)");
  EXPECT_EQ(argument({0x0003'002'5, 0x3ff0'0000'0000'0000}), "(\"n\"#3 double bits 4607182418800017408)");
  EXPECT_EQ(argument({0x0002'0003'001'6}), "(\"n\"#3 string \"minor\"#2)");
  EXPECT_EQ(argument({0x8003'0003'002'6, stream_word("abc")}), "(\"n\"#3 string \"abc\"!)");
  EXPECT_EQ(argument({0x0000'0003'001'6}), "(\"n\"#3 string \"\")");
  EXPECT_EQ(argument({0x0003'002'7, 0xdead}), "(\"n\"#3 pointer 57005)");
  EXPECT_EQ(argument({0x0003'002'8, 100}), "(\"n\"#3 koid 100)");
  EXPECT_EQ(argument({0x1'0003'001'9}), "(\"n\"#3 bool true)");
  EXPECT_EQ(argument({0x0'0003'001'9}), "(\"n\"#3 bool false)");
  EXPECT_EQ(argument({0x00000009'0003'003'a, stream_word("12345678"), stream_word("9")}),
            "(\"n\"#3 blob \"123456789\")");
  EXPECT_EQ(argument({0x00000000'0003'001'a}), "(\"n\"#3 blob \"\")");
}

TEST(FxtReaderArguments, InlineNames) {
  EXPECT_EQ(argument({0x7'8002'002'1, stream_word("ab")}), "(\"ab\"! int32 7)");
  EXPECT_EQ(argument({0x8009'004'3, stream_word("12345678"), stream_word("9"), 7}), "(\"123456789\"! int64 7)");
  EXPECT_EQ(argument({0x7'0000'001'2}), "(\"\" uint32 7)");
}

TEST(FxtReaderArguments, ReadsFifteenArguments) {
  std::vector<std::uint64_t> words{0x0002'0001'01'f'1'012'4, 5};
  for (std::uint64_t i = 0; i < 15; ++i) words.push_back(0x0'0003'001'1 | i << 32);
  words.push_back(99);
  TraceWords trace = prelude();
  trace.insert(trace.end(), words.begin(), words.end());
  const Reading reading = read_trace(file_bytes(trace));
  ASSERT_EQ(reading.error, "");
  std::string shown = "event counter t=5 thread=100/101#1 category=\"gc\"#1 name=\"minor\"#2";
  for (int i = 0; i < 15; ++i) shown += " (\"n\"#3 int32 " + std::to_string(i) + ")";
  EXPECT_EQ(reading.records.back(), shown + " extra=99");
}

TEST(FxtReaderArguments, FoundByName) {
  const auto bytes = file_bytes(after_prelude({0x0002'0001'01'2'0'004'4, 5, 0x1'0003'001'1, 0x2'0001'001'1}));
  FxtReader reader;
  ASSERT_TRUE(reader.feed(bytes, [](const fxt::Record& record) {
    const auto* event = std::get_if<fxt::parsed::EventRecord>(&record);
    if (event == nullptr) return;
    const auto* gc = find(event->arguments, "gc");
    ASSERT_NE(gc, nullptr);
    EXPECT_EQ(std::get<std::int32_t>(gc->value), 2);
    EXPECT_EQ(find(event->arguments, "minor"), nullptr);
  }));
}

}  // namespace
}  // namespace rtev::test
