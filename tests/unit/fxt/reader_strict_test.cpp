// SPDX-License-Identifier: MIT
// Whatever the format forbids is an error that names the byte, the record and the reason.
#include <gtest/gtest.h>

#include "unit/fxt/trace_reading.hpp"

namespace rtev::test {
namespace {

/// Why these words are refused after the prelude, without the place.
std::string refusal(TraceWords words) {
  TraceWords trace = prelude();
  trace.insert(trace.end(), words.begin(), words.end());
  // If the reader continued after the error, these would be further records.
  trace.insert(trace.end(), {0x0000'0000'0004'001'2, 0x0000'0000'0005'001'2});
  const Reading reading = read_trace(file_bytes(trace));
  EXPECT_EQ(reading.records.size(), 4u);
  const std::string begin = "bad trace record: at byte 80, ";
  if (!reading.error.starts_with(begin)) return "not refused at its place: " + reading.error;
  return reading.error.substr(begin.size());
}

/// The same for an instant with one argument, which these words are.
std::string argument_refusal(TraceWords words, std::size_t declared = 1) {
  words.insert(words.begin(), {0x0002'0001'01'0'0'000'4 | declared << 20 | (2 + words.size()) << 4, 5});
  return refusal(words);
}

TEST(FxtReaderStrict, MagicNumber) {
  const std::string refused = "bad trace record: at byte 0, magic number: this is not a trace in the Fuchsia format";
  EXPECT_EQ(read_trace(file_bytes({0x0016'5478'4604'0011})).error, refused);
  EXPECT_EQ(read_trace(file_bytes({0x0000'0002'0001'0022, 0x6367})).error, refused);
  EXPECT_EQ(read_trace(file_bytes({0})).error, refused);
  EXPECT_EQ(read_trace(std::as_bytes(std::span("{}", 2))).error, refused);
  EXPECT_EQ(read_trace({}).error, "bad trace record: at byte 0, magic number: missing, the trace is empty");
  EXPECT_EQ(refusal({0x0016'5478'4604'0010}), "metadata: a magic number that is not at the beginning");
  EXPECT_EQ(refusal({0x0'4'001'0}), "metadata: a magic number that is not at the beginning");
}

TEST(FxtReaderStrict, Sizes) {
  EXPECT_EQ(refusal({0}), "metadata: its size is 0");
  EXPECT_EQ(refusal({0x0002'0001'01'0'2'000'4, 5}), "event: its size is 0");
  EXPECT_EQ(refusal({0xd}), "unknown record: its size is 0");
  EXPECT_EQ(refusal({0x0'00000000'f}), "large record: large records are not supported");
  EXPECT_EQ(refusal({0x0'00000003'f, 1, 2}), "large record: large records are not supported");
  EXPECT_EQ(refusal({0x0'ffffffff'f}), "large record: large records are not supported");
}

TEST(FxtReaderStrict, Providers) {
  const char* const other_provider = "metadata: provider 7 is not the current one: several providers are not supported";
  EXPECT_EQ(refusal({0x0'09'00000001'1'002'0, stream_word("12345678")}), "metadata: too short for its name of 9 bytes");
  EXPECT_EQ(refusal({0x0'04'00000001'1'003'0, stream_word("rtev"), 0}), "metadata: it has words after its end: 1");
  EXPECT_EQ(refusal({0x0'04'00000001'1'002'0, stream_word("rtev!")}), "metadata: the padding of its name is not zero");
  EXPECT_EQ(refusal({0x1'00'00000001'1'001'0}), "metadata: reserved bits are set");
  EXPECT_EQ(refusal({0x001'00000000'2'001'0}), "metadata: reserved bits are set");
  EXPECT_EQ(refusal({0x000'00000000'2'002'0, 0}), "metadata: it has words after its end: 1");
  EXPECT_EQ(refusal({0x000'00000007'2'001'0}), other_provider);
  EXPECT_EQ(refusal({0x00'0'00000007'3'001'0}), other_provider);
  EXPECT_EQ(refusal({0x10'0'00000000'3'001'0}), "metadata: reserved bits are set");
}

TEST(FxtReaderStrict, Initialization) {
  EXPECT_EQ(refusal({0x0021, 0}), "initialization: 0 ticks per second");
  EXPECT_EQ(refusal({0x0041, 0, 1, 1}), "initialization: 0 ticks per second");
  EXPECT_EQ(refusal({0x0011}), "initialization: too short for its ticks per second");
  EXPECT_EQ(refusal({0x0031, 1, 1}), "initialization: too short for its wall clock");
  EXPECT_EQ(refusal({0x0051, 1, 1, 1, 1}), "initialization: it has words after its end: 1");
  EXPECT_EQ(refusal({0x1'0021, 1}), "initialization: reserved bits are set");
  EXPECT_EQ(refusal({0x8000'0000'0000'0021, 1}), "initialization: reserved bits are set");
}

TEST(FxtReaderStrict, Strings) {
  EXPECT_EQ(refusal({0x0000'0001'0000'002'2, stream_word("x")}), "string: string 0 cannot be defined");
  EXPECT_EQ(refusal({0x0000'0001'8001'002'2, stream_word("x")}), "string: reserved bits are set");
  EXPECT_EQ(refusal({0x0000'8001'0001'002'2, stream_word("x")}), "string: reserved bits are set");
  EXPECT_EQ(refusal({0x0001'0001'0001'002'2, stream_word("x")}), "string: reserved bits are set");
  EXPECT_EQ(refusal({0x0000'0009'0001'002'2, stream_word("x")}), "string: too short for its text of 9 bytes");
  EXPECT_EQ(refusal({0x0000'0001'0001'003'2, stream_word("x"), 0}), "string: it has words after its end: 1");
  EXPECT_EQ(refusal({0x0000'0001'0001'002'2, stream_word("xy")}), "string: the padding of its text is not zero");
  EXPECT_EQ(refusal({0x0000'0007'0001'002'2, 0x0100'0000'0000'0000}), "string: the padding of its text is not zero");
}

TEST(FxtReaderStrict, LongStrings) {
  const auto string_of = [](std::uint64_t bytes) {
    TraceWords words(1 + (bytes + 7) / 8);
    words[0] = bytes << 32 | 1 << 16 | words.size() << 4 | 2;
    return words;
  };
  TraceWords longest = prelude();
  const TraceWords string = string_of(32'000);
  longest.insert(longest.end(), string.begin(), string.end());
  EXPECT_EQ(read_trace(file_bytes(longest)).error, "");
  EXPECT_EQ(refusal(string_of(32'001)), "string: its text has 32001 bytes, more than 32000");

  TraceWords event(2 + 4001);
  event[0] = std::uint64_t{0x8000 + 32'001} << 48 | 0x0001'01'0'0'000'4 | event.size() << 4;
  EXPECT_EQ(refusal(event), "event: its name has 32001 bytes, more than 32000");
}

TEST(FxtReaderStrict, Threads) {
  EXPECT_EQ(refusal({0x00'003'3, 1, 2}), "thread: thread 0 cannot be defined");
  EXPECT_EQ(refusal({0x1'05'003'3, 1, 2}), "thread: reserved bits are set");
  EXPECT_EQ(refusal({0x05'002'3, 1}), "thread: too short for its tid");
  EXPECT_EQ(refusal({0x05'001'3}), "thread: too short for its pid");
  EXPECT_EQ(refusal({0x05'004'3, 1, 2, 3}), "thread: it has words after its end: 1");
}

TEST(FxtReaderStrict, Events) {
  EXPECT_EQ(refusal({0x0002'0001'01'0'2'001'4}), "event: too short for its time");
  EXPECT_EQ(refusal({0x0002'0001'01'0'2'003'4, 5, 6}), "event: it has words after its end: 1");
  EXPECT_EQ(refusal({0x0002'0001'01'0'1'002'4, 5}), "event: too short for its last word");
  EXPECT_EQ(refusal({0x0002'0001'00'0'2'003'4, 5, 6}), "event: too short for its thread");
  EXPECT_EQ(refusal({0x0002'0001'02'0'2'002'4, 5}), "event: its thread is thread 2, which is not defined");
  EXPECT_EQ(refusal({0x0002'0004'01'0'2'002'4, 5}), "event: its category is string 4, which is not defined");
  EXPECT_EQ(refusal({0x7fff'0001'01'0'2'002'4, 5}), "event: its name is string 32767, which is not defined");
  EXPECT_EQ(refusal({0x8009'0001'01'0'2'003'4, 5, 6}), "event: too short for its name of 9 bytes");
  EXPECT_EQ(refusal({0x0001'8002'01'0'2'003'4, 5, stream_word("abc")}),
            "event: the padding of its category is not zero");
}

TEST(FxtReaderStrict, Arguments) {
  EXPECT_EQ(argument_refusal({}), "event: argument 1 of 1: the record ends before it");
  EXPECT_EQ(argument_refusal({0x0003'001'1}, 2), "event: argument 2 of 2: the record ends before it");
  EXPECT_EQ(argument_refusal({0x0003'001'1, 0x0003'001'1}), "event: it has words after its end: 1");
  EXPECT_EQ(argument_refusal({0x0003'001'1}, 0), "event: it has words after its end: 1");
  EXPECT_EQ(argument_refusal({0x0003'000'1}), "event: argument 1 of 1: its size is 0");
  EXPECT_EQ(argument_refusal({0x0003'002'1}), "event: argument 1 of 1: its size of 2 words exceeds the record");
  EXPECT_EQ(argument_refusal({0x0003'002'1, 0}), "event: argument 1 of 1: it has words after its value: 1");
  EXPECT_EQ(argument_refusal({0x0003'001'3}), "event: argument 1 of 1: too short for its value");
  EXPECT_EQ(argument_refusal({0x0004'001'1}), "event: argument 1 of 1: its name is string 4, which is not defined");
  EXPECT_EQ(argument_refusal({0x8001'001'1, 0}), "event: argument 1 of 1: too short for its name of 1 bytes");
  EXPECT_EQ(argument_refusal({0x8001'002'1, stream_word("xy")}),
            "event: argument 1 of 1: the padding of its name is not zero");
  for (const std::uint64_t type : {0x0, 0xb, 0xc, 0xd, 0xe, 0xf}) {
    EXPECT_EQ(argument_refusal({0x0003'001'0 | type}),
              "event: argument 1 of 1: argument type " + std::to_string(type) + " is not supported");
  }
}

TEST(FxtReaderStrict, ArgumentValues) {
  for (const std::uint64_t type : {3, 4, 5, 7, 8}) {
    EXPECT_EQ(argument_refusal({0x1'0003'002'0 | type, 0}), "event: argument 1 of 1: reserved bits are set");
  }
  EXPECT_EQ(argument_refusal({0x2'0003'001'9}), "event: argument 1 of 1: reserved bits are set");
  EXPECT_EQ(argument_refusal({0x1'0002'0003'001'6}), "event: argument 1 of 1: reserved bits are set");
  EXPECT_EQ(argument_refusal({0x0004'0003'001'6}),
            "event: argument 1 of 1: its value is string 4, which is not defined");
  EXPECT_EQ(argument_refusal({0x8002'0003'002'6, stream_word("abc")}),
            "event: argument 1 of 1: the padding of its value is not zero");
  EXPECT_EQ(argument_refusal({0x8009'0003'002'6, 0}), "event: argument 1 of 1: too short for its value of 9 bytes");
  EXPECT_EQ(argument_refusal({0xffffffff'0003'002'a, 0}),
            "event: argument 1 of 1: too short for its value of 4294967295 bytes");
  EXPECT_EQ(argument_refusal({0x1'0003'002'a, stream_word("ab")}),
            "event: argument 1 of 1: the padding of its value is not zero");
}

TEST(FxtReaderStrict, Objects) {
  EXPECT_EQ(refusal({0x1'0'0002'01'002'6, 1}), "userspace object: reserved bits are set");
  EXPECT_EQ(refusal({0x0'0'0002'01'001'6}), "userspace object: too short for its address");
  EXPECT_EQ(refusal({0x0'0'0002'00'002'6, 1}), "userspace object: too short for its process");
  EXPECT_EQ(refusal({0x0'0'0002'02'002'6, 1}), "userspace object: its process is thread 2, which is not defined");
  EXPECT_EQ(refusal({0x0'1'0002'01'002'6, 1}), "userspace object: argument 1 of 1: the record ends before it");
  EXPECT_EQ(refusal({0x1'0'0002'01'002'7, 1}), "kernel object: reserved bits are set");
  EXPECT_EQ(refusal({0x0'0'0002'01'001'7}), "kernel object: too short for its koid");
  EXPECT_EQ(refusal({0x0'0'0004'01'002'7, 1}), "kernel object: its name is string 4, which is not defined");
  EXPECT_EQ(refusal({0x0'0'0002'01'003'7, 1, 1}), "kernel object: it has words after its end: 1");
}

TEST(FxtReaderStrict, Scheduling) {
  EXPECT_EQ(refusal({0x1'00001'3'0002'0'004'8, 5, 1, 2}), "scheduling: reserved bits are set");
  EXPECT_EQ(refusal({0x1'00000'6'0002'0'004'8, 5, 1, 2}), "scheduling: there is no thread state 6");
  EXPECT_EQ(refusal({0x1'00000'3'0002'0'003'8, 5, 1}), "scheduling: too short for its incoming thread");
  EXPECT_EQ(refusal({0x1'00000'3'0002'0'005'8, 5, 1, 2, 3}), "scheduling: it has words after its end: 1");
  EXPECT_EQ(refusal({0x2'000001'0002'0'003'8, 5, 1}), "scheduling: reserved bits are set");
  EXPECT_EQ(refusal({0x2'000000'0002'0'002'8, 5}), "scheduling: too short for its thread");
  EXPECT_EQ(refusal({0x2'000000'0002'1'003'8, 5, 1}), "scheduling: argument 1 of 1: the record ends before it");
}

TEST(FxtReaderStrict, ProviderRecordResetsTheTables) {
  EXPECT_EQ(read_trace(file_bytes(after_prelude({0x0'00'00000007'1'001'0, 0x0002'0001'01'0'2'002'4, 5}))).error,
            "bad trace record: at byte 88, event: its thread is thread 1, which is not defined");
}

TEST(FxtReaderStrict, StringsAreBounded) {
  // All slots with strings of full length: four times the bound.
  FxtReader reader;
  ASSERT_TRUE(reader.feed(file_bytes({fxt::magic}), [](const fxt::Record&) {}));
  TraceWords record(1 + 4000);
  for (std::uint64_t slot = 1; slot < 0x8000; ++slot) {
    record[0] = std::uint64_t{32'000} << 32 | slot << 16 | record.size() << 4 | 2;
    if (const auto fed = reader.feed(std::as_bytes(std::span(record)), [](const fxt::Record&) {}); !fed) {
      EXPECT_GT(slot, 4000u);
      EXPECT_LE(slot * 32'000, FxtReader::max_table_bytes + 32'000);
      EXPECT_EQ(fed.error().why, "at byte " + std::to_string(8 + (slot - 1) * record.size() * 8) +
                                     ", string: the strings need too much memory");
      return;
    }
  }
  FAIL() << "no bound";
}

TEST(FxtReaderStrict, ReplacedStringsDoNotCountAgainstTheBound) {
  FxtReader reader;
  ASSERT_TRUE(reader.feed(file_bytes({fxt::magic}), [](const fxt::Record&) {}));
  TraceWords record(1 + 4000);
  for (std::uint64_t i = 0; i < 9000; ++i) {  // 288 MB
    record[0] = std::uint64_t{32'000} << 32 | 1 << 16 | record.size() << 4 | 2;
    ASSERT_TRUE(reader.feed(std::as_bytes(std::span(record)), [](const fxt::Record&) {}));
    if (i % 100 == 0) {
      ASSERT_TRUE(reader.feed(file_bytes({0x0'00'00000007'1'001'0}), [](const fxt::Record&) {}));
    }
  }
}

}  // namespace
}  // namespace rtev::test
