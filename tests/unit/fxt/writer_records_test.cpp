// SPDX-License-Identifier: MIT
// Records other than events: metadata, scheduling, names, userspace objects.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "unit/fxt/written_trace.hpp"

namespace rtev::fxt {
namespace {

// Metadata: type 0, size in words 4-15, metadata type 16-19, provider id 20-51, length of its name 52-59.

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

TEST(FxtWriterMetadata, BufferFullIsWritten) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.buffer_full(), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x00'0'00000007'3'001'0));
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

// Scheduling: type 8, size 4-15, subtype 60-63.
// Context switch (1): arguments 16-19, cpu 20-35, state of the outgoing thread 36-39; time, outgoing tid, incoming tid.

TEST(FxtWriterScheduling, ContextSwitchWithoutWeights) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.write(ContextSwitch{.time = timestamp,
                                             .cpu = 0x1234,
                                             .outgoing_tid = 10,
                                             .outgoing_state = ThreadState::blocked,
                                             .incoming_tid = 20}),
            Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x1'00000'3'1234'0'004'8, timestamp, 10, 20));
}

TEST(FxtWriterScheduling, ContextSwitchFromIdleWithFurtherArguments) {
  WrittenTrace trace;
  const ContextSwitch event{.time = timestamp,
                            .cpu = 3,
                            .outgoing_tid = 0,
                            .outgoing_state = ThreadState::running,
                            .outgoing_weight = idle_weight,
                            .incoming_tid = 20,
                            .incoming_weight = 120};
  EXPECT_EQ(trace.writer.write(event, {{"d", 2}}), Status::written);
  EXPECT_THAT(trace.news(),
              ElementsAre(0x0000'000f'0005'003'2, 0x676e696d6f636e69, 0x7468676965775f,  // incoming_weight
                          0x0000'000f'0006'003'2, 0x676e696f6774756f, 0x7468676965775f,  // outgoing_weight
                          0x1'00000'1'0003'3'008'8, timestamp, 0, 20,                    //
                          0x00000078'0005'001'1, 0x80000000'0006'001'1,                  //
                          0x00000002'8001'002'1, 0x64));
  // The names are defined now.
  EXPECT_EQ(trace.writer.write(event), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x1'00000'1'0003'2'006'8, timestamp, 0, 20,  //
                                        0x00000078'0005'001'1, 0x80000000'0006'001'1));
}

// Wakeup (2): arguments 16-19, cpu 20-35; time, tid.

TEST(FxtWriterScheduling, Wakeup) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.write(Wakeup{.time = timestamp, .cpu = 0xffff, .tid = 10}), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x2'000000'ffff'0'003'8, timestamp, 10));
  EXPECT_EQ(
      trace.writer.write(Wakeup{.time = timestamp, .cpu = 1, .tid = 10, .weight = 7, .waker_tid = 11}, {{"x", true}}),
      Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x0000'0006'0005'002'2, 0x746867696577,  // "weight"
                                        0x0000'0005'0006'002'2, 0x72656b6177,    // "waker"
                                        0x2'000000'0001'3'008'8, timestamp, 10,  //
                                        0x00000007'0005'001'1,                   //
                                        0x00000000'0006'002'8, 11,               //
                                        0x00000001'8001'002'9, 0x78));
}

TEST(FxtWriterScheduling, UnknownThreadStateIsRefused) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.write(ContextSwitch{.outgoing_state = static_cast<ThreadState>(6)}), Status::wrong_arguments);
  EXPECT_EQ(trace.writer.error()->what, "cannot write context switch");
  EXPECT_THAT(trace.news(), ElementsAre());
}

// Kernel object: type 7, size 4-15, object type 16-23, name 24-39, arguments 40-43; koid.

TEST(FxtWriterNames, Process) {
  WrittenTrace trace;
  const StringRef name = trace.writer.intern("p");
  trace.news();
  EXPECT_EQ(trace.writer.name_process(4242, name), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x00000'0'0005'01'002'7, 4242));
}

TEST(FxtWriterNames, ThreadHasItsProcess) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.name_thread(100, 101, "domain 0", std::array{Argument{"ring", 3u}}), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x0000'0007'0005'002'2, 0x737365636f7270,          // "process"
                                        0x00000'2'8008'02'007'7, 101, 0x30206e69616d6f64,  // "domain 0"
                                        0x00000000'0005'002'8, 100,                        // process: koid 100
                                        0x00000003'8004'002'2, 0x676e6972));               // "ring"
}

// Userspace object: type 6, size 4-15, thread 16-23, name 24-39, arguments 40-43; pointer, inline pid.

TEST(FxtWriterObjects, UserspaceObject) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.write(UserspaceObject{.address = 0xdead, .process = {0xab}, .name = StringRef{2}}),
            Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x00000'0'0002'ab'002'6, 0xdead));
  EXPECT_EQ(trace.writer.write(UserspaceObject{.address = 0xdead, .pid = 100, .name = "o"}, {{"a", 1}}),
            Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x00000'1'8001'00'006'6, 0xdead, 100, 0x6f, 0x00000001'8001'002'1, 0x61));
}

TEST(FxtWriterObjects, InlineNamesComeBeforeInlineValues) {
  WrittenTrace trace;
  constexpr std::array<std::byte, 2> two_bytes{std::byte{1}, std::byte{2}};
  EXPECT_EQ(trace.writer.write(UserspaceObject{.process = {1}},
                               {{"123456789", "v"}, {"k", Koid{3}}, {"b", Blob{two_bytes}}, {"", ""}}),
            Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x00000'4'0000'01'00d'6, 0,                              //
                                        0x0000'8001'8009'004'6, 0x3837363534333231, 0x39, 0x76,  //
                                        0x00000000'8001'003'8, 0x6b, 3,                          //
                                        0x00000002'8001'003'a, 0x62, 0x0201,                     //
                                        0x0000'0000'0000'001'6));                                // both empty
}

}  // namespace
}  // namespace rtev::fxt
