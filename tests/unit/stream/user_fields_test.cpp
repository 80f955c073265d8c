// SPDX-License-Identifier: MIT
#include "stream/user_fields.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>

#include "unit/stream/world.hpp"

namespace rtev {
namespace {

std::string le(std::int64_t number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

UserFields fields_of(std::string_view event, const std::string& payload) {
  return user_fields(event, std::as_bytes(std::span(payload)));
}

/// As text; empty if the payload has no fields. The payload lives as long as its fields.
std::string text_of(std::string_view event, const std::string& payload, std::size_t longest = 64) {
  TextBuffer out;
  add_user_fields(out, fields_of(event, payload), longest);
  return std::string(out.text());
}

TEST(UserFields, OfEachLibrary) {
  EXPECT_EQ(text_of("eio.create_fiber", le(7) + le(3)), "id=7 cc=3");
  EXPECT_EQ(text_of("eio.create_cc", le(7) + "\x03"), R"(id=7 type="switch")");
  EXPECT_EQ(text_of("eio.create_obj", le(7) + "\x12"), R"(id=7 type="stream")");
  EXPECT_EQ(text_of("eio.name", le(-1) + "main"), R"(id=-1 name="main")");
  EXPECT_EQ(text_of("eio.error", le(9) + "Failure(\"x\")"), R"x(id=9 error="Failure(\"x\")")x");
  EXPECT_EQ(text_of("eio.log", "hello"), R"(text="hello")");
  EXPECT_EQ(text_of("lwt-trace", std::string("B\x04main\x01\x02\x04"
                                             "a.ml")),
            R"(mark="begin" context="main" line=258 file="a.ml")");
  EXPECT_EQ(text_of("lwt-trace", std::string("E\0\0\x05\0", 5)), R"(mark="end" context="" line=5 file="")");
  EXPECT_EQ(text_of("miou.spawn", le(4) + le(1) + le(0) + "\x02"), R"(uid=4 parent=1 runner=0 kind="parallel")");
  EXPECT_EQ(text_of("miou.await", le(4)), "uid=4");
  EXPECT_EQ(text_of("miou.suspend", le(4) + le(4) + "read"), R"(uid=4 name="read")");
  EXPECT_EQ(text_of("miou.location", le(4) + le(17) + le(4) + "a.ml"), R"(uid=4 line=17 file="a.ml")");
  EXPECT_EQ(text_of("trace.metric.int", le(-5) + "queue"), R"(value=-5 name="queue")");
  EXPECT_EQ(text_of("trace.metric.float", le(std::bit_cast<std::int64_t>(0.25)) + "load"), R"(value=0.25 name="load")");
  EXPECT_EQ(text_of("trace.span.enter", "parse"), R"(name="parse")");
}

TEST(UserFields, OfOtherNamesThereAreNone) {
  EXPECT_TRUE(fields_of("", le(7)).empty());
  EXPECT_TRUE(fields_of("eio.named", le(7) + "main").empty());
  EXPECT_TRUE(fields_of("zzz", "x").empty());
  EXPECT_TRUE(fields_of("eio.name ", le(7) + "main").empty());
}

TEST(UserFields, OfAnotherLengthThereAreNone) {
  EXPECT_TRUE(fields_of("eio.create_fiber", "").empty());
  EXPECT_TRUE(fields_of("eio.create_fiber", le(7)).empty());
  EXPECT_TRUE(fields_of("eio.create_fiber", le(7) + le(3).substr(1)).empty());
  EXPECT_TRUE(fields_of("eio.create_fiber", le(7) + le(3) + "x").empty());
  EXPECT_TRUE(fields_of("eio.name", "1234567").empty());
  EXPECT_TRUE(fields_of("miou.await", le(4) + le(0)).empty());  // of another version of Miou
  EXPECT_TRUE(fields_of("lwt-trace", "B\x09main").empty());
  EXPECT_TRUE(fields_of("lwt-trace", std::string("E\0\0\x05\x02"
                                                 "a",
                                                 6))
                  .empty());
}

TEST(UserFields, OfNumbersWithoutMeaningThereAreNone) {
  EXPECT_TRUE(fields_of("eio.create_cc", le(7) + "\x02").empty());
  EXPECT_TRUE(fields_of("lwt-trace", std::string("X\0\0\x05\0", 5)).empty());
  EXPECT_TRUE(fields_of("miou.spawn", std::string(25, '\0')).empty());
  EXPECT_TRUE(fields_of("miou.suspend", le(4) + le(-1) + "read").empty());
  EXPECT_TRUE(fields_of("miou.suspend", le(4) + le(INT64_MAX) + "read").empty());
  EXPECT_TRUE(fields_of("miou.suspend", le(4) + le(3) + "read").empty());
}

TEST(UserFields, TextsAreEscapedAndCutBetweenCharacters) {
  EXPECT_EQ(text_of("eio.log", "a\x1b[2Jb\n"), R"(text="a\x1B[2Jb\x0A")");
  EXPECT_EQ(text_of("eio.name", le(1) + std::string(1016, 'x')), "id=1 name=\"" + std::string(64, 'x') + "\"...");
  EXPECT_EQ(text_of("eio.log", "x\xC3\xA9\xC3\xA9", 4), "text=\"x\xC3\xA9\"...");
  for (const std::string& text : test::hostile_strings()) {
    for (const char c : text_of("eio.name", le(1) + text)) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  }
}

}  // namespace
}  // namespace rtev
