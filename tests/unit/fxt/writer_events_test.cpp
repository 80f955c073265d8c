// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>

#include "unit/fxt/writing.hpp"

namespace rtev::fxt {
namespace {

using test::TraceWords;
using test::WrittenTrace;
using testing::ElementsAre;

// Event: type 4, size 4-15, event type 16-19, arguments 20-23, thread 24-31, category 32-47, name 48-63; time; where
// they are inline pid, tid, category, name; arguments; extra word.

constexpr std::uint64_t timestamp = 0x0102030405060708;

/// Composed and of any shape must be the same words.
class FxtWriterEvents : public testing::Test {
 protected:
  WrittenTrace trace_;
  FxtWriter& writer_ = trace_.writer;
  const ThreadRef thread_ = writer_.thread(100, 101);
  const StringRef gc_ = writer_.intern("gc");
  const StringRef minor_ = writer_.intern("minor");
  const TraceWords definitions_ = trace_.news();

  ComposedEvent composed(EventType type) { return writer_.compose(type, thread_, gc_, minor_); }
  TraceWords any_shape(EventType type, std::uint64_t extra = 0) {
    EXPECT_EQ(writer_.write(EventRecord{
                  .type = type, .time = timestamp, .thread = thread_, .category = gc_, .name = minor_, .extra = extra}),
              Status::written);
    return trace_.news();
  }
  TraceWords fast(EventType type) {
    EXPECT_EQ(writer_.write(composed(type), timestamp), Status::written);
    return trace_.news();
  }
  template <ExtraWord Extra>
  TraceWords fast(EventType type, Extra extra) {
    EXPECT_EQ(writer_.write(composed(type), timestamp, extra), Status::written);
    return trace_.news();
  }
};

TEST_F(FxtWriterEvents, DefinesWhatTheyName) {
  EXPECT_THAT(definitions_, ElementsAre(0x0000000000'02'003'3, 100, 101,         //
                                        0x0000'0002'0005'002'2, 0x6367,          // "gc"
                                        0x0000'0005'0006'002'2, 0x726f6e696d));  // "minor"
}

TEST_F(FxtWriterEvents, SpanBeginAndEndTake16Bytes) {
  EXPECT_THAT(fast(duration_begin), ElementsAre(0x0006'0005'02'0'2'002'4, timestamp));
  EXPECT_THAT(fast(duration_end), ElementsAre(0x0006'0005'02'0'3'002'4, timestamp));
  EXPECT_EQ(fast(duration_begin).size() * word_bytes, 16u);
}

TEST_F(FxtWriterEvents, EveryTypeComposed) {
  EXPECT_THAT(fast(instant), ElementsAre(0x0006'0005'02'0'0'002'4, timestamp));
  EXPECT_THAT(fast(counter, CounterId{9}), ElementsAre(0x0006'0005'02'0'1'003'4, timestamp, 9));
  EXPECT_THAT(fast(duration_begin), ElementsAre(0x0006'0005'02'0'2'002'4, timestamp));
  EXPECT_THAT(fast(duration_end), ElementsAre(0x0006'0005'02'0'3'002'4, timestamp));
  EXPECT_THAT(fast(duration_complete, EndTime{timestamp + 1}),
              ElementsAre(0x0006'0005'02'0'4'003'4, timestamp, timestamp + 1));
  EXPECT_THAT(fast(async_begin, AsyncId{9}), ElementsAre(0x0006'0005'02'0'5'003'4, timestamp, 9));
  EXPECT_THAT(fast(async_instant, AsyncId{9}), ElementsAre(0x0006'0005'02'0'6'003'4, timestamp, 9));
  EXPECT_THAT(fast(async_end, AsyncId{9}), ElementsAre(0x0006'0005'02'0'7'003'4, timestamp, 9));
  EXPECT_THAT(fast(flow_begin, FlowId{~0ull}), ElementsAre(0x0006'0005'02'0'8'003'4, timestamp, ~0ull));
  EXPECT_THAT(fast(flow_step, FlowId{9}), ElementsAre(0x0006'0005'02'0'9'003'4, timestamp, 9));
  EXPECT_THAT(fast(flow_end, FlowId{9}), ElementsAre(0x0006'0005'02'0'a'003'4, timestamp, 9));
}

TEST_F(FxtWriterEvents, EveryTypeInAnyShape) {
  EXPECT_THAT(any_shape(instant), ElementsAre(0x0006'0005'02'0'0'002'4, timestamp));
  EXPECT_THAT(any_shape(counter, 9), ElementsAre(0x0006'0005'02'0'1'003'4, timestamp, 9));
  EXPECT_THAT(any_shape(duration_begin), ElementsAre(0x0006'0005'02'0'2'002'4, timestamp));
  EXPECT_THAT(any_shape(duration_end), ElementsAre(0x0006'0005'02'0'3'002'4, timestamp));
  EXPECT_THAT(any_shape(duration_complete, timestamp + 1),
              ElementsAre(0x0006'0005'02'0'4'003'4, timestamp, timestamp + 1));
  EXPECT_THAT(any_shape(async_begin, 9), ElementsAre(0x0006'0005'02'0'5'003'4, timestamp, 9));
  EXPECT_THAT(any_shape(async_instant, 9), ElementsAre(0x0006'0005'02'0'6'003'4, timestamp, 9));
  EXPECT_THAT(any_shape(async_end, 9), ElementsAre(0x0006'0005'02'0'7'003'4, timestamp, 9));
  EXPECT_THAT(any_shape(flow_begin, 9), ElementsAre(0x0006'0005'02'0'8'003'4, timestamp, 9));
  EXPECT_THAT(any_shape(flow_step, 9), ElementsAre(0x0006'0005'02'0'9'003'4, timestamp, 9));
  EXPECT_THAT(any_shape(flow_end, 9), ElementsAre(0x0006'0005'02'0'a'003'4, timestamp, 9));
}

TEST_F(FxtWriterEvents, AComposedEventTellsWhatItIs) {
  const ComposedEvent event = composed(flow_step);
  EXPECT_TRUE(event.valid());
  EXPECT_EQ(event.type(), flow_step);
  EXPECT_EQ(event.thread(), thread_);
  EXPECT_EQ(event.category(), gc_);
  EXPECT_EQ(event.name(), minor_);
  static_assert(std::is_trivially_copyable_v<ComposedEvent> && sizeof(ComposedEvent) <= 24);
}

TEST_F(FxtWriterEvents, AnotherThreadCategoryOrNameChangesNothingElse) {
  const ComposedEvent event = composed(duration_begin).with_thread({0xab}).with_category({0x1234}).with_name({0x7654});
  EXPECT_EQ(writer_.write(event, timestamp), Status::written);
  EXPECT_EQ(writer_.write(event.with_category({}).with_name({}), timestamp), Status::written);
  EXPECT_THAT(trace_.news(), ElementsAre(0x7654'1234'ab'0'2'002'4, timestamp, 0x0000'0000'ab'0'2'002'4, timestamp));
}

TEST_F(FxtWriterEvents, InlineThreadCategoryAndNameStandBeforeTheArguments) {
  EXPECT_EQ(writer_.write(EventRecord{.type = counter,
                                      .time = timestamp,
                                      .thread = {100, 101},
                                      .category = "gc",
                                      .name = "123456789",
                                      .extra = 9},
                          {{"n", true}}),
            Status::written);
  EXPECT_THAT(trace_.news(), ElementsAre(0x8009'8002'00'1'1'00a'4, timestamp, 100, 101,  //
                                         0x6367,                                         // "gc"
                                         0x3837363534333231, 0x39,                       // "123456789"
                                         0x00000001'8001'002'9, 0x6e,                    // bool true, its name "n"
                                         9));
}

TEST_F(FxtWriterEvents, AnEmptyInlineTextIsTheEmptyString) {
  EXPECT_EQ(writer_.write(EventRecord{.time = timestamp, .thread = thread_, .name = ""}, {{"", ""}}), Status::written);
  EXPECT_THAT(trace_.news(), ElementsAre(0x0000'0000'02'1'0'003'4, timestamp, 0x00000000'0000'001'6));
}

TEST_F(FxtWriterEvents, EventTypesHaveNames) {
  EXPECT_EQ(to_string(instant), "instant");
  EXPECT_EQ(to_string(duration_complete), "duration complete");
  EXPECT_EQ(to_string(flow_end), "flow end");
  EXPECT_EQ(to_string(static_cast<EventType>(11)), "unknown");
  EXPECT_EQ(to_string(ArgumentType::null), "null");
  EXPECT_EQ(to_string(ArgumentType::blob), "blob");
  EXPECT_EQ(to_string(static_cast<ArgumentType>(11)), "unknown");
  EXPECT_EQ(to_string(Status::written), "written");
  EXPECT_EQ(to_string(Status::failed), "the trace failed");
}

}  // namespace
}  // namespace rtev::fxt
