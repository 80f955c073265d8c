// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "unit/fxt/writing.hpp"

namespace rtev::fxt {
namespace {

using test::WrittenTrace;
using testing::ElementsAre;

constexpr std::uint64_t now = 0x0102030405060708;

// Scheduling: type 8, size 4-15, subtype 60-63.
// Context switch (1): arguments 16-19, cpu 20-35, state of the outgoing thread 36-39; time, outgoing tid, incoming tid.

TEST(FxtWriterScheduling, ContextSwitchWithoutWeights) {
  WrittenTrace trace;
  EXPECT_EQ(
      trace.writer.write(ContextSwitch{
          .time = now, .cpu = 0x1234, .outgoing_tid = 10, .outgoing_state = ThreadState::blocked, .incoming_tid = 20}),
      Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x1'00000'3'1234'0'004'8, now, 10, 20));
}

TEST(FxtWriterScheduling, ContextSwitchFromIdleWithFurtherArguments) {
  WrittenTrace trace;
  const ContextSwitch event{.time = now,
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
                          0x1'00000'1'0003'3'008'8, now, 0, 20,                          //
                          0x00000078'0005'001'1, 0x80000000'0006'001'1,                  //
                          0x00000002'8001'002'1, 0x64));
  // The names are known by now.
  EXPECT_EQ(trace.writer.write(event), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x1'00000'1'0003'2'006'8, now, 0, 20,  //
                                        0x00000078'0005'001'1, 0x80000000'0006'001'1));
}

// Legacy switch (0): cpu 16-23, state 24-27, outgoing thread 28-35, incoming 36-43, their priorities 44-51 and 52-59.

TEST(FxtWriterScheduling, LegacySwitch) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.write(LegacySwitch{.time = now,
                                            .cpu = 0x12,
                                            .outgoing = ThreadRef{0xab},
                                            .outgoing_state = ThreadState::dead,
                                            .outgoing_priority = 0x34,
                                            .incoming = ThreadRef{0xcd},
                                            .incoming_priority = 0x56}),
            Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x0'56'34'cd'ab'5'12'002'8, now));
  EXPECT_EQ(trace.writer.write(LegacySwitch{.time = now, .outgoing = {1, 2}, .incoming = {3, 4}}), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x0'00'00'00'00'1'00'006'8, now, 1, 2, 3, 4));
  EXPECT_EQ(trace.writer.write(LegacySwitch{.time = now, .outgoing = ThreadRef{9}, .incoming = {3, 4}}),
            Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x0'00'00'00'09'1'00'004'8, now, 3, 4));
}

// Wakeup (2): arguments 16-19, cpu 20-35; time, tid.

TEST(FxtWriterScheduling, Wakeup) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.write(Wakeup{.time = now, .cpu = 0xffff, .tid = 10}), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x2'000000'ffff'0'003'8, now, 10));
  EXPECT_EQ(
      trace.writer.write(Wakeup{.time = now, .cpu = 1, .tid = 10, .weight = 7, .waker_tid = 11}, {{"x", nullptr}}),
      Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x0000'0006'0005'002'2, 0x746867696577,  // "weight"
                                        0x0000'0005'0006'002'2, 0x72656b6177,    // "waker"
                                        0x2'000000'0001'3'008'8, now, 10,        //
                                        0x00000007'0005'001'1,                   //
                                        0x00000000'0006'002'8, 11,               //
                                        0x00000000'8001'002'0, 0x78));
}

TEST(FxtWriterScheduling, StatesOfTheFormatOnly) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.write(ContextSwitch{.outgoing_state = static_cast<ThreadState>(6)}), Status::wrong_arguments);
  EXPECT_EQ(trace.writer.write(
                LegacySwitch{.outgoing = {1, 1}, .outgoing_state = static_cast<ThreadState>(16), .incoming = {1, 1}}),
            Status::wrong_arguments);
  EXPECT_EQ(trace.writer.error()->message(), "cannot write context switch: its thread state is none of the format");
  EXPECT_THAT(trace.news(), ElementsAre());
}

// Kernel object: type 7, size 4-15, object type 16-23, name 24-39, arguments 40-43; koid.

TEST(FxtWriterObjects, ProcessName) {
  WrittenTrace trace;
  const StringRef name = trace.writer.intern("p");
  trace.news();
  EXPECT_EQ(trace.writer.name_process(4242, name), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x00000'0'0005'01'002'7, 4242));
}

TEST(FxtWriterObjects, ThreadNameSaysItsProcess) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.name_thread(100, 101, "domain 0", std::array{Argument{"ring", 3u}}), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x0000'0007'0005'002'2, 0x737365636f7270,          // "process"
                                        0x00000'2'8008'02'007'7, 101, 0x30206e69616d6f64,  // "domain 0"
                                        0x00000000'0005'002'8, 100,                        // process: koid 100
                                        0x00000003'8004'002'2, 0x676e6972));               // "ring"
}

TEST(FxtWriterObjects, AnyKernelObject) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.write(KernelObject{.type = static_cast<KernelObjectType>(0x7f), .koid = 9, .name = "s"},
                               {{"a", std::uint64_t{1}}}),
            Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x00000'1'8001'7f'006'7, 9, 0x73, 0x00000000'8001'003'4, 0x61, 1));
}

// Userspace object: type 6, size 4-15, thread 16-23, name 24-39, arguments 40-43; pointer, inline pid.

TEST(FxtWriterObjects, UserspaceObject) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.write(UserspaceObject{.address = 0xdead, .process = ThreadRef{0xab}, .name = StringRef{2}}),
            Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x00000'0'0002'ab'002'6, 0xdead));
  EXPECT_EQ(trace.writer.write(UserspaceObject{.address = 0xdead, .process = {100, 101}, .name = "o"}, {{"a", 1}}),
            Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x00000'1'8001'00'006'6, 0xdead, 100, 0x6f, 0x00000001'8001'002'1, 0x61));
}

// Blob: type 5, size 4-15, name 16-31, bytes 32-46, blob type 48-55; payload.

TEST(FxtWriterBlobs, OfEachType) {
  WrittenTrace trace;
  constexpr std::array<std::byte, 3> bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  EXPECT_EQ(trace.writer.write(BlobRecord{.name = StringRef{2}, .payload = bytes}), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x00'01'0003'0002'002'5, 0x030201));
  EXPECT_EQ(trace.writer.write(BlobRecord{.type = BlobType::last_branch, .name = "n", .payload = bytes}),
            Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x00'02'0003'8001'003'5, 0x6e, 0x030201));
  EXPECT_EQ(trace.writer.write(BlobRecord{.type = BlobType::perfetto}), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x00'03'0000'0000'001'5));
}

// Log: type 9, size 4-15, bytes 16-30, thread 32-39; time, inline pid and tid; message.

TEST(FxtWriterLogs, IndexedAndInlineThread) {
  WrittenTrace trace;
  EXPECT_EQ(trace.writer.write(LogRecord{.time = now, .thread = ThreadRef{0xab}, .message = "hi"}), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x000000'ab'0002'003'9, now, 0x6968));
  EXPECT_EQ(trace.writer.write(LogRecord{.time = now, .thread = {1, 2}, .message = "123456789"}), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x000000'00'0009'006'9, now, 1, 2, 0x3837363534333231, 0x39));
  EXPECT_EQ(trace.writer.write(LogRecord{.time = now, .thread = ThreadRef{1}}), Status::written);
  EXPECT_THAT(trace.news(), ElementsAre(0x000000'01'0000'002'9, now));
}

}  // namespace
}  // namespace rtev::fxt
