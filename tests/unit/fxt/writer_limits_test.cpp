// SPDX-License-Identifier: MIT
// Limits of the format, each just kept and just exceeded, and events with other values than they were composed for.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "unit/fxt/written_trace.hpp"

namespace rtev::fxt {
namespace {

constexpr Parameter an_int64{ArgumentType::int64, {}}, a_text{ArgumentType::string, {}};

class FxtWriterLimits : public testing::Test {
 protected:
  WrittenTrace trace_;
  FxtWriter& writer_ = trace_.writer;
  const StringRef gc_ = writer_.intern("gc");
  const TraceWords definitions_ = trace_.news();

  /// What the event takes and what it was given, from the reason for the refusal.
  template <typename... Values>
  std::pair<std::string, std::string> mismatch(std::initializer_list<Parameter> parameters, const Values&... values) {
    EXPECT_EQ(writer_.write(writer_.compose(counter, {1}, {}, gc_, parameters), 1, values...), Status::wrong_arguments);
    EXPECT_EQ(writer_.refused(), 1u);
    EXPECT_FALSE(writer_.failed());
    EXPECT_THAT(trace_.news(), ElementsAre());
    EXPECT_EQ(writer_.buffer_full(), Status::written) << "the trace continues";
    EXPECT_EQ(writer_.error()->subject, "gc");
    const std::string why(trace_.why());
    const std::size_t takes = std::string_view("it takes ").size(), separator = why.find(", not ");
    return {why.substr(takes, separator - takes), why.substr(separator + 6)};
  }
};

using Mismatch = std::pair<std::string, std::string>;

TEST_F(FxtWriterLimits, TooFewValues) {
  EXPECT_EQ(mismatch({an_int64, a_text}, CounterId{1}, std::int64_t{1}),
            Mismatch("counter id, int64, string", "counter id, int64"));
}

TEST_F(FxtWriterLimits, TooManyValues) {
  EXPECT_EQ(mismatch({an_int64}, CounterId{1}, std::int64_t{1}, true),
            Mismatch("counter id, int64", "counter id, int64, bool"));
}

TEST_F(FxtWriterLimits, ValueOfAnotherType) {
  EXPECT_EQ(mismatch({an_int64}, CounterId{1}, 1), Mismatch("counter id, int64", "counter id, int32"));
}

TEST_F(FxtWriterLimits, NoExtraWord) {
  EXPECT_EQ(mismatch({an_int64}, std::int64_t{1}), Mismatch("counter id, int64", "int64"));
}

TEST_F(FxtWriterLimits, AnotherExtraWord) {
  EXPECT_EQ(mismatch({}, FlowId{1}), Mismatch("counter id", "flow id"));
}

TEST_F(FxtWriterLimits, AnExtraWordForATypeWithout) {
  EXPECT_EQ(writer_.write(writer_.compose(duration_begin, {1}, {}, gc_), 1, EndTime{2}), Status::wrong_arguments);
  EXPECT_EQ(trace_.why(), "it takes no values, not end time");
}

TEST_F(FxtWriterLimits, InvalidEventsAreRefused) {
  EXPECT_EQ(writer_.write(ComposedEvent(), 1), Status::wrong_arguments);
  EXPECT_EQ(trace_.why(), "it is not a valid composed event");
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
  EXPECT_EQ(writer_.error()->what, "cannot compose event");
  EXPECT_FALSE(writer_.compose(instant, {1}, inline_text, gc_).valid());
  EXPECT_FALSE(writer_.compose(instant, {1}, gc_, inline_text).valid());
  EXPECT_FALSE(writer_.compose(instant, {1}, gc_, gc_, {{ArgumentType::int32, inline_text}}).valid());
  EXPECT_EQ(writer_.write(good.with_thread({}), 1), Status::wrong_arguments);
  EXPECT_EQ(writer_.refused(), 5u);
  EXPECT_THAT(trace_.news(), ElementsAre());
}

TEST_F(FxtWriterLimits, UnknownTypesCannotBeComposed) {
  EXPECT_FALSE(writer_.compose(static_cast<EventType>(11), {1}, {}, gc_).valid());
  EXPECT_FALSE(writer_.compose(instant, {1}, {}, gc_, {{static_cast<ArgumentType>(0), {}}}).valid());
  EXPECT_FALSE(writer_.compose(instant, {1}, {}, gc_, {{static_cast<ArgumentType>(11), {}}}).valid());
  EXPECT_THAT(trace_.news(), ElementsAre());
}

TEST_F(FxtWriterLimits, ReferencesToInlineTextWithoutTheText) {
  const StringRef inline_text{0x8001};
  const ComposedEvent event = writer_.compose(instant, {1}, {}, gc_, {a_text});
  EXPECT_EQ(writer_.write(event, 1, inline_text), Status::wrong_arguments);
  EXPECT_EQ(writer_.write(event, 1, Text(inline_text)), Status::wrong_arguments);
  EXPECT_EQ(writer_.name_process(1, inline_text), Status::wrong_arguments);
  EXPECT_EQ(writer_.write(UserspaceObject{}, {{inline_text, 1}}), Status::wrong_arguments);
  EXPECT_EQ(writer_.write(UserspaceObject{}, {{"n", inline_text}}), Status::wrong_arguments);
  EXPECT_EQ(writer_.refused(), 5u);
  EXPECT_THAT(trace_.news(), ElementsAre());
}

TEST_F(FxtWriterLimits, SixteenParameters) {
  const std::vector<Parameter> parameters(16, an_int64);
  EXPECT_FALSE(writer_.compose(instant, {1}, {}, gc_, parameters).valid());
  EXPECT_EQ(trace_.why(), "it has more than 15 parameters");
}

TEST_F(FxtWriterLimits, SixteenArguments) {
  Arguments arguments;
  for (int i = 0; i < 40; ++i) arguments.add("a", i);
  EXPECT_EQ(writer_.write(UserspaceObject{}, arguments), Status::over_limit);
  EXPECT_EQ(writer_.error()->message(), "cannot write userspace object: it has more than 15 arguments");
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
  EXPECT_EQ(writer_.name_process(1, longest), Status::written);
  EXPECT_EQ(trace_.news().size(), 2u + 4000);
  EXPECT_EQ(writer_.write(event, 1, too_long), Status::over_limit);
  EXPECT_EQ(writer_.write(UserspaceObject{}, {{too_long, 1}}), Status::over_limit);
  EXPECT_EQ(writer_.write(UserspaceObject{}, {{"n", too_long}}), Status::over_limit);
  EXPECT_EQ(writer_.name_process(1, too_long), Status::over_limit);
  EXPECT_EQ(writer_.refused(), 4u);
  EXPECT_THAT(trace_.why(), HasSubstr("32000 bytes"));
  EXPECT_THAT(trace_.news(), ElementsAre());
}

TEST_F(FxtWriterLimits, RecordsOf4095Words) {
  const std::vector<std::byte> bytes(32768);
  const ComposedEvent event = writer_.compose(instant, {1}, {}, gc_, {{ArgumentType::blob, {}}});
  const auto blob = [&](std::size_t size) { return Blob{std::span(bytes).first(size)}; };
  EXPECT_EQ(writer_.write(event, 1, blob(4092 * 8)), Status::written);
  const TraceWords written = trace_.news();
  EXPECT_EQ(written.size(), 4095u);
  EXPECT_EQ(written[0], 0x0005'0000'01'1'0'fff'4u);
  EXPECT_EQ(written[2], 0x00007fe0'0000'ffd'au);
  const UserspaceObject object{.process = {1}};
  EXPECT_EQ(writer_.write(object, {{{}, blob(4092 * 8)}}), Status::written);
  EXPECT_EQ(trace_.news().size(), 4095u);
  EXPECT_EQ(writer_.write(object, {{{}, blob(4092 * 8 + 1)}}), Status::over_limit);
  EXPECT_EQ(trace_.why(), "it has more than 4095 words");
  EXPECT_EQ(writer_.write(event, 1, blob(4092 * 8 + 1)), Status::over_limit);
  EXPECT_THAT(trace_.news(), ElementsAre());
}

TEST_F(FxtWriterLimits, SizesThatWouldOverflow) {
  const Blob huge{std::span(reinterpret_cast<const std::byte*>(this), ~std::size_t{0})};  // never read
  const std::vector<Parameter> parameters(3, Parameter{ArgumentType::blob, {}});
  EXPECT_EQ(writer_.write(writer_.compose(instant, {1}, {}, gc_, parameters), 1, huge, huge, huge), Status::over_limit);
  EXPECT_EQ(writer_.write(UserspaceObject{}, {{{}, huge}, {{}, huge}, {{}, huge}}), Status::over_limit);
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
