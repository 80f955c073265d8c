// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>

#include "unit/fxt/written_trace.hpp"

namespace rtev::fxt {
namespace {

// String: type 2, size 4-15, slot 16-30, length in bytes 32-46; then the bytes, padded with zeros.

TEST(FxtWriterStrings, TextIsDefinedOnce) {
  WrittenTrace trace;
  const StringRef gc = trace.writer.intern("gc");
  const StringRef eight = trace.writer.intern("12345678");
  const StringRef nine = trace.writer.intern("123456789");
  EXPECT_THAT(trace.news(), ElementsAre(0x0000'0002'0005'002'2, 0x6367,              // "gc"
                                        0x0000'0008'0006'002'2, 0x3837363534333231,  // "12345678"
                                        0x0000'0009'0007'003'2, 0x3837363534333231, 0x39));
  EXPECT_EQ(gc.slot(), first_interned);
  EXPECT_EQ(trace.writer.intern("gc"), gc);
  EXPECT_EQ(trace.writer.intern("12345678"), eight);
  EXPECT_EQ(trace.writer.intern("123456789"), nine);
  EXPECT_EQ(trace.writer.intern(""), StringRef{});
  EXPECT_THAT(trace.news(), ElementsAre());
  EXPECT_TRUE(trace.writer.is_lasting(gc));
  EXPECT_TRUE(trace.writer.is_lasting({}));
  EXPECT_FALSE(trace.writer.is_lasting({8}));  // not interned yet
}

TEST(FxtWriterStrings, FixedSlotsAreOverwrittenByNumber) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.set_string(2, "a"), StringRef{2});
  EXPECT_EQ(trace.writer.set_string(2, "b"), StringRef{2});
  EXPECT_EQ(trace.writer.set_string(1, ""), StringRef{1});
  EXPECT_THAT(trace.news(), ElementsAre(0x0000'0001'0002'002'2, 0x61,  //
                                        0x0000'0001'0002'002'2, 0x62,  //
                                        0x0000'0000'0001'001'2));
  EXPECT_FALSE(trace.writer.is_lasting({2}));
  EXPECT_EQ(trace.writer.set_string(0, "x"), StringRef{});
  EXPECT_EQ(trace.writer.set_string(3, "x"), StringRef{});
  EXPECT_EQ(trace.writer.error()->what, "cannot set string slot");
  EXPECT_EQ(trace.writer.refused(), 2u);
  EXPECT_THAT(trace.news(), ElementsAre());
}

TEST(FxtWriterStrings, TemporarySlotsAreReusedInTurn) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.temporary("a"), StringRef{3});
  EXPECT_EQ(trace.writer.temporary("a"), StringRef{4});
  EXPECT_EQ(trace.writer.temporary("b"), StringRef{3});
  EXPECT_EQ(trace.writer.temporary(""), StringRef{});
  EXPECT_FALSE(trace.writer.is_lasting({3}));
  EXPECT_THAT(trace.news(), ElementsAre(0x0000'0001'0003'002'2, 0x61,  //
                                        0x0000'0001'0004'002'2, 0x61,  //
                                        0x0000'0001'0003'002'2, 0x62));
}

TEST(FxtWriterStrings, TextsBeyondTheSlotsBecomeTemporary) {
  WrittenTrace trace;
  StringRef last;
  for (int i = first_interned; i <= max_string_slot; ++i) last = trace.writer.intern(std::to_string(i));
  EXPECT_EQ(last.slot(), 0x7fff);
  EXPECT_TRUE(trace.writer.is_lasting(last));
  trace.news();
  const StringRef over = trace.writer.intern("x");
  EXPECT_EQ(over, StringRef{3});
  EXPECT_FALSE(trace.writer.is_lasting(over));
  EXPECT_EQ(trace.writer.intern("y"), StringRef{4});
  EXPECT_EQ(trace.writer.intern("x"), StringRef{3});
  EXPECT_EQ(trace.writer.intern("32767"), last);
  EXPECT_THAT(trace.news(), ElementsAre(0x0000'0001'0003'002'2, 0x78,  //
                                        0x0000'0001'0004'002'2, 0x79,  //
                                        0x0000'0001'0003'002'2, 0x78));
  // Names that the format prescribes need no slot.
  EXPECT_EQ(trace.writer.name_thread(1, 2, "n"), Status::written);
  EXPECT_EQ(trace.news().size(), 2u + 1 + 3);
  EXPECT_EQ(trace.writer.error(), std::nullopt);
}

TEST(FxtWriterStrings, KeepsALimitedNumberOfBytes) {
  auto options = few_slots();
  options.interned_bytes = 10;
  WrittenTrace trace(options);
  EXPECT_TRUE(trace.writer.is_lasting(trace.writer.intern("12345678")));
  EXPECT_FALSE(trace.writer.is_lasting(trace.writer.intern("123")));
  EXPECT_TRUE(trace.writer.is_lasting(trace.writer.intern("12")));
}

TEST(FxtWriterStrings, WithoutTemporarySlotsFurtherTextsAreRefused) {
  WrittenTrace trace({.temporary_strings = 0, .interned_bytes = 1});
  EXPECT_EQ(trace.writer.intern("ab"), StringRef{});
  EXPECT_EQ(trace.writer.error()->subject, "ab");
  EXPECT_THAT(trace.news(), ElementsAre());
}

TEST(FxtWriterStrings, TextsAreLimitedTo32000Bytes) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.intern(std::string(32000, 'x')), StringRef{first_interned});
  const TraceWords written = trace.news();
  ASSERT_EQ(written.size(), 1u + 4000);
  EXPECT_EQ(written[0], 0x0000'7d00'0005'fa1'2u);
  EXPECT_EQ(trace.writer.intern(std::string(32001, 'x')), StringRef{});
  EXPECT_EQ(trace.writer.temporary(std::string(32001, 'x')), StringRef{});
  EXPECT_EQ(trace.writer.set_string(1, std::string(32001, 'x')), StringRef{});
  EXPECT_EQ(trace.why(), "it has 32001 bytes, at most 32000 are allowed");
  EXPECT_THAT(trace.news(), ElementsAre());
  EXPECT_EQ(trace.writer.intern("next"), StringRef{first_interned + 1});
}

// Thread: type 3, size 4-15, slot 16-23; pid; tid.

TEST(FxtWriterThreads, ThreadIsDefinedOnce) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.thread(100, 101), ThreadRef{2});
  EXPECT_EQ(trace.writer.thread(100, 102), ThreadRef{3});
  EXPECT_EQ(trace.writer.thread(100, 101), ThreadRef{2});
  EXPECT_EQ(trace.writer.thread(100, 101), ThreadRef{2});
  EXPECT_EQ(trace.writer.thread(101, 100), ThreadRef{4});
  EXPECT_THAT(trace.news(), ElementsAre(0x0000000000'02'003'3, 100, 101,  //
                                        0x0000000000'03'003'3, 100, 102,  //
                                        0x0000000000'04'003'3, 101, 100));
}

TEST(FxtWriterThreads, FixedSlotsAreOverwrittenByNumber) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.set_thread(1, 5, 6), ThreadRef{1});
  EXPECT_EQ(trace.writer.set_thread(1, 5, 7), ThreadRef{1});
  EXPECT_THAT(trace.news(), ElementsAre(0x0000000000'01'003'3, 5, 6, 0x0000000000'01'003'3, 5, 7));
  EXPECT_EQ(trace.writer.set_thread(0, 5, 7), ThreadRef{});
  EXPECT_EQ(trace.writer.set_thread(2, 5, 7), ThreadRef{});
  EXPECT_EQ(trace.writer.error()->what, "cannot set thread slot");
  EXPECT_THAT(trace.news(), ElementsAre());
}

TEST(FxtWriterThreads, TheLeastRecentlyUsedOneLosesItsSlot) {
  WrittenTrace trace;
  for (unsigned tid = first_thread; tid <= max_thread_slot; ++tid) EXPECT_EQ(trace.writer.thread(1, tid).slot(), tid);
  EXPECT_EQ(trace.writer.thread(1, 2).slot(), 2);  // so that 3 is the oldest
  trace.news();
  EXPECT_EQ(trace.writer.thread(1, 1000).slot(), 3);
  EXPECT_EQ(trace.writer.thread(1, 1001).slot(), 4);
  EXPECT_THAT(trace.news(), ElementsAre(0x0000000000'03'003'3, 1, 1000, 0x0000000000'04'003'3, 1, 1001));
  EXPECT_EQ(trace.writer.thread(1, 1000).slot(), 3);
  EXPECT_EQ(trace.writer.thread(1, 2).slot(), 2);
  EXPECT_THAT(trace.news(), ElementsAre());
  EXPECT_EQ(trace.writer.thread(1, 3).slot(), 5);  // lost its slot, gets another
  EXPECT_THAT(trace.news(), ElementsAre(0x0000000000'05'003'3, 1, 3));
}

TEST(FxtWriterThreads, PidAndTid0AreAnOrdinaryThread) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.thread(0, 0).slot(), 2);
  EXPECT_EQ(trace.writer.thread(1, 1).slot(), 3);
  EXPECT_EQ(trace.writer.thread(0, 0).slot(), 2);
  EXPECT_EQ(trace.news().size(), 6u);
}

TEST(FxtWriterThreads, MoreThreadsThanSlotsKeepTheirIdentity) {
  WrittenTrace trace;
  std::vector<std::uint64_t> holder(256);
  std::uint64_t seed = 1;
  for (int i = 0; i < 20'000; ++i) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    const std::uint64_t pid = seed >> 60, tid = seed >> 40 & 63;
    const ThreadRef thread = trace.writer.thread(pid, tid);
    const TraceWords definition = trace.news();
    ASSERT_GE(thread.slot(), first_thread);
    if (!definition.empty()) {
      ASSERT_THAT(definition, ElementsAre(std::uint64_t{thread.slot()} << 16 | 0x33, pid, tid));
      holder[thread.slot()] = pid << 8 | tid;
    }
    ASSERT_EQ(holder[thread.slot()], pid << 8 | tid);
  }
}

TEST(FxtWriterThreads, ReferenceIsKeptWhile253OtherThreadsAreUsed) {
  WrittenTrace trace;
  const ThreadRef kept = trace.writer.thread(1, 1);
  for (unsigned tid = 2; tid < 2 + (254 - 1); ++tid) trace.writer.thread(1, tid);
  trace.news();
  EXPECT_EQ(trace.writer.thread(1, 1), kept);
  EXPECT_THAT(trace.news(), ElementsAre());
}

TEST(FxtWriterThreads, WithOnlyFixedSlotsThreadIsRefused) {
  WrittenTrace trace({.fixed_threads = 255});
  EXPECT_EQ(trace.writer.set_thread(255, 1, 1), ThreadRef{255});
  EXPECT_EQ(trace.news().size(), 3u);
  EXPECT_EQ(trace.writer.thread(1, 1), ThreadRef{});
  EXPECT_EQ(trace.writer.error()->what, "cannot define thread");
  EXPECT_THAT(trace.news(), ElementsAre());
}

}  // namespace
}  // namespace rtev::fxt
