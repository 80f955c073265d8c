// SPDX-License-Identifier: MIT
// What is refused: every limit just kept and just passed, and events not written as composed.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "unit/fxt/writing.hpp"

namespace rtev::fxt {
namespace {

using test::TraceWords;
using test::WrittenTrace;
using testing::ElementsAre;
using testing::HasSubstr;

class FxtWriterLimits : public testing::Test {
 protected:
  WrittenTrace trace_;
  FxtWriter& writer_ = trace_.writer;
  const StringRef gc_ = writer_.intern("gc");
  const TraceWords definitions_ = trace_.news();

  /// The reason for the first refusal, after which the trace is as before and goes on.
  std::string refused(Status expected, Status status) {
    EXPECT_EQ(status, expected);
    EXPECT_EQ(writer_.refused(), 1u);
    EXPECT_FALSE(writer_.failed());
    EXPECT_THAT(trace_.news(), ElementsAre());
    EXPECT_EQ(writer_.buffer_full(), Status::written);
    EXPECT_EQ(trace_.news().size(), 1u);
    return writer_.error() ? writer_.error()->message() : "";
  }
  template <typename... Values>
  std::string wrong_arguments(std::initializer_list<Parameter> parameters, const Values&... values) {
    return refused(Status::wrong_arguments,
                   writer_.write(writer_.compose(counter, {1}, {}, gc_, parameters), 1, values...));
  }
};

constexpr Parameter an_int64{ArgumentType::int64, {}}, a_text{ArgumentType::string, {}}, a_null{ArgumentType::null, {}};

TEST_F(FxtWriterLimits, TooFewArguments) {
  EXPECT_EQ(wrong_arguments({an_int64, a_text}, CounterId{1}, std::int64_t{1}),
            "cannot write event gc: it takes counter id, int64, string, but is given counter id, int64");
}

TEST_F(FxtWriterLimits, TooManyArguments) {
  EXPECT_EQ(wrong_arguments({an_int64}, CounterId{1}, std::int64_t{1}, nullptr),
            "cannot write event gc: it takes counter id, int64, but is given counter id, int64, null");
}

TEST_F(FxtWriterLimits, ANullIsNotNothing) {
  EXPECT_EQ(wrong_arguments({a_null}, CounterId{1}),
            "cannot write event gc: it takes counter id, null, but is given counter id");
}

TEST_F(FxtWriterLimits, AnArgumentOfAnotherType) {
  EXPECT_EQ(wrong_arguments({an_int64}, CounterId{1}, 1),
            "cannot write event gc: it takes counter id, int64, but is given counter id, int32");
}

TEST_F(FxtWriterLimits, NoExtraWord) {
  EXPECT_EQ(wrong_arguments({an_int64}, std::int64_t{1}),
            "cannot write event gc: it takes counter id, int64, but is given int64");
}

TEST_F(FxtWriterLimits, AnotherExtraWord) {
  EXPECT_EQ(wrong_arguments({}, FlowId{1}), "cannot write event gc: it takes counter id, but is given flow id");
}

TEST_F(FxtWriterLimits, AnExtraWordWhereThereIsNone) {
  EXPECT_EQ(
      refused(Status::wrong_arguments, writer_.write(writer_.compose(duration_begin, {1}, {}, gc_), 1, EndTime{2})),
      "cannot write event gc: it takes nothing, but is given end time");
}

TEST_F(FxtWriterLimits, NothingIsWrittenOfAnEventThatWasNotComposed) {
  EXPECT_EQ(refused(Status::wrong_arguments, writer_.write(ComposedEvent(), 1)),
            "cannot write event: it could not be composed, or took an inline reference");
}

TEST_F(FxtWriterLimits, InlineReferencesCannotBeComposed) {
  const StringRef inline_text{0x8001};
  const ComposedEvent good = writer_.compose(instant, {1}, gc_, gc_);
  EXPECT_TRUE(good.valid());
  EXPECT_FALSE(good.with_thread({}).valid());
  EXPECT_FALSE(good.with_category(inline_text).valid());
  EXPECT_FALSE(good.with_name(inline_text).valid());
  EXPECT_FALSE(writer_.compose(instant, {}, gc_, gc_).valid());
  EXPECT_EQ(writer_.refused(), 1u);
  EXPECT_EQ(writer_.error()->message(),
            "cannot compose event gc: its thread, category and name must be references to slots");
  EXPECT_FALSE(writer_.compose(instant, {1}, inline_text, gc_).valid());
  EXPECT_FALSE(writer_.compose(instant, {1}, gc_, inline_text).valid());
  EXPECT_FALSE(writer_.compose(instant, {1}, gc_, gc_, {{ArgumentType::int32, inline_text}}).valid());
  EXPECT_EQ(writer_.write(good.with_thread({}), 1), Status::wrong_arguments);
  EXPECT_EQ(writer_.refused(), 5u);
  EXPECT_THAT(trace_.news(), ElementsAre());
}

TEST_F(FxtWriterLimits, TypesThatTheFormatDoesNotHave) {
  EXPECT_FALSE(writer_.compose(static_cast<EventType>(11), {1}, {}, gc_).valid());
  EXPECT_FALSE(writer_.compose(instant, {1}, {}, gc_, {{static_cast<ArgumentType>(11), {}}}).valid());
  EXPECT_EQ(writer_.write(EventRecord{.type = static_cast<EventType>(11), .thread = {1, 1}}), Status::wrong_arguments);
  EXPECT_THAT(trace_.news(), ElementsAre());
}

TEST_F(FxtWriterLimits, ReferencesThatClaimInlineWords) {
  const StringRef inline_text{0x8001};
  const ComposedEvent event = writer_.compose(instant, {1}, {}, gc_, {a_text});
  EXPECT_EQ(writer_.write(event, 1, inline_text), Status::wrong_arguments);
  EXPECT_EQ(writer_.write(event, 1, Text(inline_text)), Status::wrong_arguments);
  EXPECT_EQ(writer_.write(EventRecord{.thread = {1, 1}, .name = inline_text}), Status::wrong_arguments);
  EXPECT_EQ(writer_.write(EventRecord{.thread = {1, 1}}, {{inline_text, 1}}), Status::wrong_arguments);
  EXPECT_EQ(writer_.write(EventRecord{.thread = {1, 1}}, {{"n", inline_text}}), Status::wrong_arguments);
  EXPECT_EQ(writer_.write(EventRecord{.thread = ThreadRef{}}), Status::wrong_arguments);
  EXPECT_EQ(writer_.write(LogRecord{.thread = ThreadRef{}}), Status::wrong_arguments);
  EXPECT_EQ(writer_.write(UserspaceObject{.process = ThreadRef{}}), Status::wrong_arguments);
  EXPECT_EQ(writer_.refused(), 8u);
  EXPECT_THAT(trace_.news(), ElementsAre());
}

TEST_F(FxtWriterLimits, AnExtraWordForATypeWithoutInAnyShape) {
  EXPECT_EQ(refused(Status::wrong_arguments, writer_.write(EventRecord{.thread = {1, 1}, .extra = 1})),
            "cannot write event: its type has no extra word");
}

TEST_F(FxtWriterLimits, SixteenParameters) {
  const std::vector<Parameter> parameters(16, an_int64);
  EXPECT_FALSE(writer_.compose(instant, {1}, {}, gc_, parameters).valid());
  EXPECT_EQ(trace_.why(), "it has more than 15 parameters");
}

TEST_F(FxtWriterLimits, SixteenArguments) {
  Arguments arguments;
  for (int i = 0; i < 40; ++i) arguments.add("a", i);
  EXPECT_EQ(refused(Status::over_limit, writer_.write(EventRecord{.thread = {1, 1}}, arguments)),
            "cannot write event: it has more than 15 arguments");
}

TEST_F(FxtWriterLimits, PrescribedArgumentsCountToo) {
  Arguments arguments;
  for (int i = 0; i < 14; ++i) arguments.add({}, i);
  EXPECT_EQ(writer_.name_thread(1, 1, gc_, arguments), Status::written);
  EXPECT_EQ(writer_.write(Wakeup{.weight = 1}, arguments), Status::written);
  trace_.news();
  arguments.add({}, 14);
  EXPECT_EQ(writer_.name_thread(1, 1, gc_, arguments), Status::over_limit);
  EXPECT_EQ(writer_.write(Wakeup{.weight = 1}, arguments), Status::over_limit);
  EXPECT_EQ(writer_.write(ContextSwitch{.time = 1}, arguments), Status::written);
}

TEST_F(FxtWriterLimits, TextsOf32000Bytes) {
  const std::string longest(32000, 'x'), too_long(32001, 'x');
  const ComposedEvent event = writer_.compose(instant, {1}, {}, gc_, {a_text});
  EXPECT_EQ(writer_.write(event, 1, longest), Status::written);
  EXPECT_EQ(trace_.news().size(), 2u + 1 + 4000);
  EXPECT_EQ(writer_.write(EventRecord{.thread = ThreadRef{1}, .name = longest}), Status::written);
  EXPECT_EQ(trace_.news().size(), 2u + 4000);
  EXPECT_EQ(writer_.write(event, 1, too_long), Status::over_limit);
  EXPECT_EQ(writer_.write(EventRecord{.thread = ThreadRef{1}, .name = too_long}), Status::over_limit);
  EXPECT_EQ(writer_.write(EventRecord{.thread = ThreadRef{1}}, {{too_long, 1}}), Status::over_limit);
  EXPECT_EQ(writer_.write(EventRecord{.thread = ThreadRef{1}}, {{"n", too_long}}), Status::over_limit);
  EXPECT_EQ(writer_.name_process(1, too_long), Status::over_limit);
  EXPECT_EQ(writer_.refused(), 5u);
  EXPECT_THAT(trace_.why(), HasSubstr("32000 bytes"));
  EXPECT_THAT(trace_.news(), ElementsAre());
}

TEST_F(FxtWriterLimits, RecordsOf4095Words) {
  const std::vector<std::byte> bytes(32768);
  const ComposedEvent event = writer_.compose(instant, {1}, {}, gc_, {{ArgumentType::blob, {}}});
  const auto blob = [&](std::size_t size) { return Blob{std::span(bytes).first(size)}; };
  EXPECT_EQ(writer_.write(event, 1, blob(4092 * 8)), Status::written);
  TraceWords written = trace_.news();
  EXPECT_EQ(written.size(), 4095u);
  EXPECT_EQ(written[0], 0x0005'0000'01'1'0'fff'4u);
  EXPECT_EQ(written[2], 0x00007fe0'0000'ffd'au);
  EXPECT_EQ(writer_.write(EventRecord{.thread = ThreadRef{1}, .name = gc_}, {{{}, blob(4092 * 8)}}), Status::written);
  written[1] = 0;
  EXPECT_EQ(trace_.news(), written);
  EXPECT_EQ(writer_.write(event, 1, blob(4092 * 8 + 1)), Status::over_limit);
  EXPECT_EQ(writer_.write(EventRecord{.thread = ThreadRef{1}}, {{{}, blob(4092 * 8 + 1)}}), Status::over_limit);
  EXPECT_EQ(trace_.why(), "a text has more than 32000 bytes, or the record more than 4095 words");
  EXPECT_THAT(trace_.news(), ElementsAre());
}

TEST_F(FxtWriterLimits, SizesThatWouldOverflow) {
  const Blob huge{std::span(reinterpret_cast<const std::byte*>(this), ~std::size_t{0})};  // never read
  const std::vector<Parameter> parameters(3, Parameter{ArgumentType::blob, {}});
  EXPECT_EQ(writer_.write(writer_.compose(instant, {1}, {}, gc_, parameters), 1, huge, huge, huge), Status::over_limit);
  EXPECT_EQ(writer_.write(EventRecord{.thread = ThreadRef{1}}, {{{}, huge}, {{}, huge}, {{}, huge}}),
            Status::over_limit);
  EXPECT_EQ(writer_.write(BlobRecord{.payload = huge.bytes}), Status::over_limit);
  EXPECT_THAT(trace_.news(), ElementsAre());
}

TEST_F(FxtWriterLimits, Payloads) {
  const std::vector<std::byte> bytes(40000);
  const auto payload = [&](std::size_t size) { return BlobRecord{.payload = std::span(bytes).first(size)}; };
  EXPECT_EQ(writer_.write(payload(4094 * 8)), Status::written);
  EXPECT_EQ(trace_.news().size(), 4095u);
  EXPECT_EQ(writer_.write(payload(4094 * 8 + 1)), Status::over_limit);  // fits the length, not the record
  EXPECT_EQ(trace_.why(), "a record has 4095 words at most");
  EXPECT_EQ(writer_.write(payload(32768)), Status::over_limit);
  const std::string text(32768, 'x');
  const auto log = [&](std::size_t size) {
    return LogRecord{.thread = ThreadRef{1}, .message = std::string_view(text).substr(0, size)};
  };
  EXPECT_EQ(writer_.write(log(4093 * 8)), Status::written);
  EXPECT_EQ(trace_.news().size(), 4095u);
  EXPECT_EQ(writer_.write(log(4093 * 8 + 1)), Status::over_limit);
  EXPECT_EQ(writer_.write(log(32768)), Status::over_limit);
  EXPECT_THAT(trace_.news(), ElementsAre());
}

TEST_F(FxtWriterLimits, TheFirstRefusalIsKept) {
  EXPECT_EQ(writer_.set_string(99, "x"), StringRef{});
  EXPECT_EQ(writer_.set_thread(99, 1, 1), ThreadRef{});
  EXPECT_EQ(writer_.error()->subject, "99");
  EXPECT_EQ(writer_.error()->what, "cannot set string slot");
  EXPECT_EQ(writer_.refused(), 2u);
  EXPECT_EQ(writer_.flush(), Status::written);
}

}  // namespace
}  // namespace rtev::fxt
