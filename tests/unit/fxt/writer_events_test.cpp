// SPDX-License-Identifier: MIT
// Composed events of every type, with every type of argument.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <type_traits>

#include "unit/fxt/written_trace.hpp"

namespace rtev::fxt {
namespace {

using testing::ElementsAreArray;

// Event: type 4, size 4-15, event type 16-19, arguments 20-23, thread 24-31, category 32-47, name 48-63; time;
// arguments; extra word.

class FxtWriterEvents : public testing::Test {
 protected:
  WrittenTrace trace_;
  FxtWriter& writer_ = trace_.writer;
  const ThreadRef thread_ = writer_.thread(100, 101);
  const StringRef gc_ = writer_.intern("gc");
  const StringRef minor_ = writer_.intern("minor");
  const TraceWords definitions_ = trace_.news();

  ComposedEvent composed(EventType type) { return writer_.compose(type, thread_, gc_, minor_); }
  template <typename... Values>
  TraceWords written(EventType type, Values... values) {
    EXPECT_EQ(writer_.write(composed(type), timestamp, values...), Status::written);
    return trace_.news();
  }
};

TEST_F(FxtWriterEvents, DefineTheirStringsAndThread) {
  EXPECT_THAT(definitions_, ElementsAre(0x0000000000'02'003'3, 100, 101,         //
                                        0x0000'0002'0005'002'2, 0x6367,          // "gc"
                                        0x0000'0005'0006'002'2, 0x726f6e696d));  // "minor"
}

TEST_F(FxtWriterEvents, OfEveryType) {
  EXPECT_THAT(written(instant), ElementsAre(0x0006'0005'02'0'0'002'4, timestamp));
  EXPECT_THAT(written(counter, CounterId{9}), ElementsAre(0x0006'0005'02'0'1'003'4, timestamp, 9));
  EXPECT_THAT(written(duration_begin), ElementsAre(0x0006'0005'02'0'2'002'4, timestamp));
  EXPECT_THAT(written(duration_end), ElementsAre(0x0006'0005'02'0'3'002'4, timestamp));
  EXPECT_THAT(written(duration_complete, EndTime{timestamp + 1}),
              ElementsAre(0x0006'0005'02'0'4'003'4, timestamp, timestamp + 1));
  EXPECT_THAT(written(async_begin, AsyncId{9}), ElementsAre(0x0006'0005'02'0'5'003'4, timestamp, 9));
  EXPECT_THAT(written(async_instant, AsyncId{9}), ElementsAre(0x0006'0005'02'0'6'003'4, timestamp, 9));
  EXPECT_THAT(written(async_end, AsyncId{9}), ElementsAre(0x0006'0005'02'0'7'003'4, timestamp, 9));
  EXPECT_THAT(written(flow_begin, FlowId{~0ull}), ElementsAre(0x0006'0005'02'0'8'003'4, timestamp, ~0ull));
  EXPECT_THAT(written(flow_step, FlowId{9}), ElementsAre(0x0006'0005'02'0'9'003'4, timestamp, 9));
  EXPECT_THAT(written(flow_end, FlowId{9}), ElementsAre(0x0006'0005'02'0'a'003'4, timestamp, 9));
}

TEST_F(FxtWriterEvents, ComposedEventHasItsParts) {
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

TEST_F(FxtWriterEvents, EnumeratorsHaveNames) {
  EXPECT_EQ(to_string(instant), "instant");
  EXPECT_EQ(to_string(duration_complete), "duration complete");
  EXPECT_EQ(to_string(flow_end), "flow end");
  EXPECT_EQ(to_string(static_cast<EventType>(11)), "unknown");
  EXPECT_EQ(to_string(ArgumentType::int32), "int32");
  EXPECT_EQ(to_string(ArgumentType::blob), "blob");
  EXPECT_EQ(to_string(static_cast<ArgumentType>(0)), "unknown");
  EXPECT_EQ(to_string(static_cast<ArgumentType>(11)), "unknown");
  EXPECT_EQ(to_string(Status::written), "written");
  EXPECT_EQ(to_string(Status::failed), "the trace failed");
}

// Argument: type 0-3, size 4-15, name 16-31, value or its size 32-63; then inline name, 64-bit value or stream.

constexpr std::array<std::byte, 9> nine_bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5},
                                              std::byte{6}, std::byte{7}, std::byte{8}, std::byte{9}};

class FxtWriterArguments : public testing::Test {
 protected:
  WrittenTrace trace_;
  FxtWriter& writer_ = trace_.writer;
  const StringRef name_ = writer_.intern("n");   // slot 5
  const StringRef text_ = writer_.intern("tt");  // slot 6
  const TraceWords definitions_ = trace_.news();

  /// The argument's words, which must be the same in events and in other records.
  template <ArgumentValue T>
  TraceWords words_of(ArgumentType type, const T& value) {
    const ComposedEvent event = writer_.compose(instant, {0x11}, {}, {}, {{type, name_}});
    EXPECT_EQ(writer_.write(event, timestamp, value), Status::written);
    const TraceWords record = trace_.news();
    EXPECT_EQ(record.at(0), 0x0000'0000'11'1'0'000'4u | record.size() << 4);
    EXPECT_EQ(record.at(1), timestamp);
    const TraceWords argument(record.begin() + 2, record.end());
    EXPECT_EQ(writer_.write(UserspaceObject{.process = {0x11}}, {{name_, value}}), Status::written);
    const TraceWords object = trace_.news();
    EXPECT_THAT(TraceWords(object.begin() + 2, object.end()), ElementsAreArray(argument));
    return argument;
  }
};

TEST_F(FxtWriterArguments, Integers) {
  EXPECT_THAT(words_of(ArgumentType::int32, 0x12345678), ElementsAre(0x12345678'0005'001'1));
  EXPECT_THAT(words_of(ArgumentType::int32, -1), ElementsAre(0xffffffff'0005'001'1));
  EXPECT_THAT(words_of(ArgumentType::int32, std::int8_t{-2}), ElementsAre(0xfffffffe'0005'001'1));
  EXPECT_THAT(words_of(ArgumentType::uint32, 0xfffffffeu), ElementsAre(0xfffffffe'0005'001'2));
  EXPECT_THAT(words_of(ArgumentType::uint32, std::uint16_t{0xffff}), ElementsAre(0x0000ffff'0005'001'2));
  EXPECT_THAT(words_of(ArgumentType::int64, std::int64_t{-2}), ElementsAre(0x00000000'0005'002'3, 0xfffffffffffffffe));
  EXPECT_THAT(words_of(ArgumentType::int64, std::numeric_limits<long long>::min()),
              ElementsAre(0x00000000'0005'002'3, 0x8000000000000000));
  EXPECT_THAT(words_of(ArgumentType::uint64, ~std::uint64_t{0}),
              ElementsAre(0x00000000'0005'002'4, 0xffffffffffffffff));
}

TEST_F(FxtWriterArguments, Double) {
  EXPECT_THAT(words_of(ArgumentType::floating, -1.5), ElementsAre(0x00000000'0005'002'5, 0xbff8000000000000));
  EXPECT_THAT(words_of(ArgumentType::floating, 0.5f), ElementsAre(0x00000000'0005'002'5, 0x3fe0000000000000));
}

TEST_F(FxtWriterArguments, String) {
  EXPECT_THAT(words_of(ArgumentType::string, text_), ElementsAre(0x0000'0006'0005'001'6));
  EXPECT_THAT(words_of(ArgumentType::string, StringRef{}), ElementsAre(0x0000'0000'0005'001'6));
  EXPECT_THAT(words_of(ArgumentType::string, std::string_view("ab")), ElementsAre(0x0000'8002'0005'002'6, 0x6261));
  EXPECT_THAT(words_of(ArgumentType::string, "123456789"),
              ElementsAre(0x0000'8009'0005'003'6, 0x3837363534333231, 0x39));
  EXPECT_THAT(words_of(ArgumentType::string, std::string("12345678")),
              ElementsAre(0x0000'8008'0005'002'6, 0x3837363534333231));
  EXPECT_THAT(words_of(ArgumentType::string, std::string()), ElementsAre(0x0000'0000'0005'001'6));
  EXPECT_THAT(words_of(ArgumentType::string, Text(text_)), ElementsAre(0x0000'0006'0005'001'6));
  EXPECT_THAT(words_of(ArgumentType::string, Text("ab")), ElementsAre(0x0000'8002'0005'002'6, 0x6261));
}

TEST_F(FxtWriterArguments, PointerKoidAndBool) {
  EXPECT_THAT(words_of(ArgumentType::pointer, Pointer{0x7fff12345678}),
              ElementsAre(0x00000000'0005'002'7, 0x7fff12345678));
  EXPECT_THAT(words_of(ArgumentType::koid, Koid{4242}), ElementsAre(0x00000000'0005'002'8, 4242));
  EXPECT_THAT(words_of(ArgumentType::boolean, true), ElementsAre(0x00000001'0005'001'9));
  EXPECT_THAT(words_of(ArgumentType::boolean, false), ElementsAre(0x00000000'0005'001'9));
}

TEST_F(FxtWriterArguments, Blob) {
  EXPECT_THAT(words_of(ArgumentType::blob, Blob{nine_bytes}),
              ElementsAre(0x00000009'0005'003'a, 0x0807060504030201, 9));
  EXPECT_THAT(words_of(ArgumentType::blob, Blob{}), ElementsAre(0x00000000'0005'001'a));
}

TEST_F(FxtWriterArguments, SeveralComeInOrderBeforeTheExtraWord) {
  const ComposedEvent event = writer_.compose(counter, {0x11}, {}, {},
                                              {{ArgumentType::int64, name_},
                                               {ArgumentType::string, text_},
                                               {ArgumentType::int32, {}},
                                               {ArgumentType::blob, name_}});
  EXPECT_EQ(writer_.write(event, timestamp, CounterId{77}, std::int64_t{1}, "x", 2, Blob{nine_bytes}), Status::written);
  EXPECT_THAT(trace_.news(), ElementsAre(0x0000'0000'11'4'1'00b'4, timestamp,           //
                                         0x00000000'0005'002'3, 1,                      // int64
                                         0x0000'8001'0006'002'6, 0x78,                  // inline string "x"
                                         0x00000002'0000'001'1,                         // int32 without a name
                                         0x00000009'0005'003'a, 0x0807060504030201, 9,  // blob
                                         77));                                          // counter id
}

TEST_F(FxtWriterArguments, WritesFifteenArguments) {
  std::vector<Parameter> parameters(15, Parameter{ArgumentType::koid, name_});
  const ComposedEvent event = writer_.compose(instant, {0x11}, {}, {}, parameters);
  const Koid k{1};
  EXPECT_EQ(writer_.write(event, timestamp, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k), Status::written);
  const TraceWords composed = trace_.news();
  EXPECT_EQ(composed.size(), 2u + 30);
  EXPECT_EQ(composed[0], 0x0000'0000'11'f'0'020'4u);
  Arguments arguments;
  for (int i = 0; i < 15; ++i) arguments.add(name_, k);
  EXPECT_EQ(writer_.write(UserspaceObject{.process = {0x11}}, arguments), Status::written);
  const TraceWords object = trace_.news();
  EXPECT_TRUE(std::equal(object.begin() + 2, object.end(), composed.begin() + 2, composed.end()));
}

}  // namespace
}  // namespace rtev::fxt
