// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>

#include "unit/fxt/writing.hpp"

namespace rtev::fxt {
namespace {

using test::WrittenTrace;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

// Metadata: type 0 in bits 0-3, size in words 4-15, metadata type 16-19, provider id 20-51, 52-59 length of its name.

TEST(FxtWriterMetadata, BeginsWithMagicThenProviderThenTicks) {
  FxtMemory memory;
  FxtWriter writer(memory, {.provider_id = 0x12345678, .provider_name = "rtev-bpf", .ticks_per_second = 1000});
  writer.flush();
  EXPECT_THAT(memory.words(), ElementsAre(0x0016547846040010,
                                          0x0'08'12345678'1'002'0,  // provider info, 8 bytes of name
                                          0x6670622d76657472,       // "rtev-bpf"
                                          0x000000000000'002'1,     // initialization, 2 words
                                          1000));
  EXPECT_EQ(writer.error(), std::nullopt);
  EXPECT_EQ(static_cast<int>(memory.bytes()[0]), 0x10);
  EXPECT_EQ(static_cast<int>(memory.bytes()[2]), 0x04);
}

TEST(FxtWriterMetadata, TicksAreNanosecondsByDefault) {
  FxtMemory memory;
  FxtWriter writer(memory);
  writer.flush();
  EXPECT_EQ(memory.words().back(), 1'000'000'000u);
}

TEST(FxtWriterMetadata, AProviderHasStringsAndThreadsOfItsOwn) {
  WrittenTrace trace;
  FxtWriter& writer = trace.writer;
  const StringRef mine = writer.intern("x");
  const ThreadRef my_thread = writer.thread(1, 2);
  trace.news();
  EXPECT_EQ(writer.add_provider(8, "other", 10), Status::written);
  EXPECT_EQ(writer.intern("x"), mine);
  EXPECT_EQ(writer.thread(1, 2), my_thread);
  EXPECT_THAT(trace.news(), ElementsAre(0x0'05'00000008'1'002'0, 0x000000'726568746f,  // provider info, "other"
                                        0x000000000000'002'1, 10,                      // initialization
                                        0x0000'0001'0005'002'2, 0x78,                  // its string "x"
                                        0x0000000000'02'003'3, 1, 2));                 // its thread
  EXPECT_EQ(writer.select_provider(7), Status::written);
  EXPECT_EQ(writer.intern("x"), mine);
  EXPECT_EQ(writer.thread(1, 2), my_thread);
  EXPECT_EQ(writer.buffer_full(), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x000'00000007'2'001'0,     // section of provider 7
                                        0x00'0'00000007'3'001'0));  // provider event: buffer full
}

TEST(FxtWriterMetadata, UnknownAndRepeatedProvidersAreRefused) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.select_provider(8), Status::over_limit);
  EXPECT_EQ(trace.writer.error()->message(), "cannot select provider 8: it was not added");
  EXPECT_EQ(trace.writer.add_provider(7, "again"), Status::over_limit);
  EXPECT_EQ(trace.writer.add_provider(9, std::string(256, 'n')), Status::over_limit);
  EXPECT_EQ(trace.writer.add_provider(9, "n", 0), Status::over_limit);
  EXPECT_EQ(trace.writer.refused(), 4u);
  EXPECT_THAT(trace.news(), ElementsAre());
  EXPECT_EQ(trace.writer.add_provider(9, std::string(255, 'n')), Status::written);
  EXPECT_EQ(trace.news().size(), 1u + 32 + 2);
}

TEST(FxtWriterMetadata, WrongOptionsWriteNothing) {
  const auto why_not = [](const FxtWriter::Options& options) {
    FxtMemory memory;
    FxtWriter writer(memory, options);
    EXPECT_TRUE(writer.failed());
    EXPECT_EQ(writer.intern("x"), StringRef{});
    EXPECT_EQ(writer.thread(1, 1), ThreadRef{});
    EXPECT_EQ(writer.buffer_full(), Status::failed);
    EXPECT_EQ(writer.flush(), Status::failed);
    EXPECT_TRUE(memory.words().empty());
    return writer.error()->message();
  };
  EXPECT_THAT(why_not({.provider_name = std::string(256, 'n')}), HasSubstr("255 bytes"));
  EXPECT_THAT(why_not({.ticks_per_second = 0}), HasSubstr("ticks"));
  EXPECT_THAT(why_not({.fixed_strings = 32767, .temporary_strings = 1}), HasSubstr("32767"));
}

}  // namespace
}  // namespace rtev::fxt
