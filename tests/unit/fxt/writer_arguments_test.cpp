// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numbers>
#include <string>

#include "unit/fxt/writing.hpp"

namespace rtev::fxt {
namespace {

using test::TraceWords;
using test::WrittenTrace;
using testing::ElementsAre;
using testing::ElementsAreArray;

// Argument: type 0-3, size 4-15, name 16-31, value or what tells of it 32-63; then inline name, 64-bit value or stream.

constexpr std::uint64_t now = 5;
constexpr std::array<std::byte, 9> nine_bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5},
                                              std::byte{6}, std::byte{7}, std::byte{8}, std::byte{9}};

class FxtWriterArguments : public testing::Test {
 protected:
  WrittenTrace trace_;
  FxtWriter& writer_ = trace_.writer;
  const StringRef name_ = writer_.intern("n");   // slot 5
  const StringRef text_ = writer_.intern("tt");  // slot 6
  const TraceWords definitions_ = trace_.news();

  /// The argument's words, which both ways of writing have to agree on.
  template <ArgumentValue T>
  TraceWords words_of(ArgumentType type, const T& value) {
    const ComposedEvent event = writer_.compose(instant, {0x11}, {}, {}, {{type, name_}});
    EXPECT_EQ(writer_.write(event, now, value), Status::written);
    const TraceWords fast = trace_.news();
    EXPECT_EQ(writer_.write(EventRecord{.time = now, .thread = ThreadRef{0x11}}, {{name_, value}}), Status::written);
    EXPECT_THAT(trace_.news(), ElementsAreArray(fast));
    EXPECT_EQ(fast.at(0), 0x0000'0000'11'1'0'000'4u | fast.size() << 4);
    EXPECT_EQ(fast.at(1), now);
    return {fast.begin() + 2, fast.end()};
  }
};

TEST_F(FxtWriterArguments, Null) {
  EXPECT_THAT(words_of(ArgumentType::null, nullptr), ElementsAre(0x00000000'0005'001'0));
}

TEST_F(FxtWriterArguments, Int32) {
  EXPECT_THAT(words_of(ArgumentType::int32, 0x12345678), ElementsAre(0x12345678'0005'001'1));
  EXPECT_THAT(words_of(ArgumentType::int32, -1), ElementsAre(0xffffffff'0005'001'1));
  EXPECT_THAT(words_of(ArgumentType::int32, std::int8_t{-2}), ElementsAre(0xfffffffe'0005'001'1));
}

TEST_F(FxtWriterArguments, Uint32) {
  EXPECT_THAT(words_of(ArgumentType::uint32, 0xfffffffeu), ElementsAre(0xfffffffe'0005'001'2));
  EXPECT_THAT(words_of(ArgumentType::uint32, std::uint16_t{0xffff}), ElementsAre(0x0000ffff'0005'001'2));
}

TEST_F(FxtWriterArguments, Int64) {
  EXPECT_THAT(words_of(ArgumentType::int64, std::int64_t{-2}), ElementsAre(0x00000000'0005'002'3, 0xfffffffffffffffe));
  EXPECT_THAT(words_of(ArgumentType::int64, std::numeric_limits<long long>::min()),
              ElementsAre(0x00000000'0005'002'3, 0x8000000000000000));
}

TEST_F(FxtWriterArguments, Uint64) {
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

TEST_F(FxtWriterArguments, Pointer) {
  EXPECT_THAT(words_of(ArgumentType::pointer, Pointer{0x7fff12345678}),
              ElementsAre(0x00000000'0005'002'7, 0x7fff12345678));
}

TEST_F(FxtWriterArguments, Koid) {
  EXPECT_THAT(words_of(ArgumentType::koid, Koid{4242}), ElementsAre(0x00000000'0005'002'8, 4242));
}

TEST_F(FxtWriterArguments, Bool) {
  EXPECT_THAT(words_of(ArgumentType::boolean, true), ElementsAre(0x00000001'0005'001'9));
  EXPECT_THAT(words_of(ArgumentType::boolean, false), ElementsAre(0x00000000'0005'001'9));
}

TEST_F(FxtWriterArguments, Blob) {
  EXPECT_THAT(words_of(ArgumentType::blob, Blob{nine_bytes}),
              ElementsAre(0x00000009'0005'003'a, 0x0807060504030201, 9));
  EXPECT_THAT(words_of(ArgumentType::blob, Blob{}), ElementsAre(0x00000000'0005'001'a));
}

TEST_F(FxtWriterArguments, SeveralStandInOrderBeforeTheExtraWord) {
  const ComposedEvent event = writer_.compose(counter, {0x11}, {}, {},
                                              {{ArgumentType::int64, name_},
                                               {ArgumentType::string, text_},
                                               {ArgumentType::int32, {}},
                                               {ArgumentType::blob, name_}});
  const auto expected = ElementsAre(0x0000'0000'11'4'1'00b'4, now,                 //
                                    0x00000000'0005'002'3, 1,                      // int64
                                    0x0000'8001'0006'002'6, 0x78,                  // inline string "x"
                                    0x00000002'0000'001'1,                         // int32 without a name
                                    0x00000009'0005'003'a, 0x0807060504030201, 9,  // blob
                                    77);                                           // counter id
  EXPECT_EQ(writer_.write(event, now, CounterId{77}, std::int64_t{1}, "x", 2, Blob{nine_bytes}), Status::written);
  EXPECT_THAT(trace_.news(), expected);

  Arguments arguments;
  arguments.add(name_, std::int64_t{1}).add(text_, "x").add({}, 2).add(name_, Blob{nine_bytes});
  EXPECT_EQ(writer_.write(EventRecord{.type = counter, .time = now, .thread = ThreadRef{0x11}, .extra = 77}, arguments),
            Status::written);
  EXPECT_THAT(trace_.news(), expected);
}

TEST_F(FxtWriterArguments, AnInlineNameStandsBeforeAnInlineValue) {
  EXPECT_EQ(writer_.write(EventRecord{.time = now, .thread = ThreadRef{0x11}},
                          {{"123456789", "v"}, {"k", Koid{3}}, {"b", Blob{nine_bytes}}}),
            Status::written);
  EXPECT_THAT(trace_.news(), ElementsAre(0x0000'0000'11'3'0'00d'4, now,                           //
                                         0x0000'8001'8009'004'6, 0x3837363534333231, 0x39, 0x76,  //
                                         0x00000000'8001'003'8, 0x6b, 3,                          //
                                         0x00000009'8001'004'a, 0x62, 0x0807060504030201, 9));
}

TEST_F(FxtWriterArguments, FifteenOfThem) {
  std::vector<Parameter> parameters(15, Parameter{ArgumentType::koid, name_});
  const ComposedEvent event = writer_.compose(instant, {0x11}, {}, {}, parameters);
  const Koid k{1};
  EXPECT_EQ(writer_.write(event, now, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k), Status::written);
  const TraceWords fast = trace_.news();
  EXPECT_EQ(fast.size(), 2u + 30);
  EXPECT_EQ(fast[0], 0x0000'0000'11'f'0'020'4u);
  Arguments arguments;
  for (int i = 0; i < 15; ++i) arguments.add(name_, k);
  EXPECT_EQ(writer_.write(EventRecord{.time = now, .thread = ThreadRef{0x11}}, arguments), Status::written);
  EXPECT_THAT(trace_.news(), ElementsAreArray(fast));
}

}  // namespace
}  // namespace rtev::fxt
