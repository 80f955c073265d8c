// SPDX-License-Identifier: MIT
#include "base/escape.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/terminal_check.hpp"
#include "unit/stream/world.hpp"

namespace rtev {
namespace {

std::string json_of(std::string_view text) {
  TextBuffer out;
  add_json_string(out, text);
  return std::string{out.text()};
}
std::string in_quotes(std::string_view text) {
  TextBuffer out;
  add_quoted(out, text);
  return std::string{out.text()};
}
std::string column(std::string_view text, std::size_t width) {
  TextBuffer out;
  add_column(out, text, width);
  return std::string{out.text()};
}

constexpr std::string_view replacement = "\xEF\xBF\xBD";

TEST(JsonString, KeepsValidText) {
  for (const std::string text : {"", "plain", "caf\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x90\xAB camel", "a\"b\\c/d"}) {
    EXPECT_EQ(nlohmann::json::parse(json_of(text)).get<std::string>(), text);
  }
  EXPECT_EQ(json_of("a\"\\"), R"("a\"\\")");
}

TEST(JsonString, EscapesACharacterAtAnyPlace) {
  for (int code = 0; code < 0x80; ++code) {
    const std::string alone = json_of(std::string(1, static_cast<char>(code)));
    for (std::size_t place = 0; place < 20; ++place) {
      std::string text(20, 'x'), expected = text;
      text[place] = static_cast<char>(code);
      expected.replace(place, 1, alone, 1, alone.size() - 2);
      EXPECT_EQ(json_of(text), '"' + expected + '"');
    }
  }
}

TEST(JsonString, EscapesControlCharacters) {
  EXPECT_EQ(json_of(std::string_view{"\0\n\x1f", 3}), "\"\\u0000\\u000a\\u001f\"");
  EXPECT_EQ(json_of("\x7f"), "\"\\u007f\"");
  EXPECT_EQ(json_of("\xC2\x9B"), "\"\\u009b\"");
  EXPECT_EQ(json_of("\xC2\xA0"), "\"\xC2\xA0\"");
}

TEST(JsonString, ReplacesInvalidUtf8) {
  const auto expect_replaced = [](std::string_view bytes) {
    std::string expected;
    for (std::size_t i = 0; i < bytes.size(); ++i) expected += replacement;
    EXPECT_EQ(json_of(bytes), '"' + expected + '"');
  };
  expect_replaced("\x80");
  expect_replaced("\xFF\xFE");
  expect_replaced("\xC0\xAF");          // overlong
  expect_replaced("\xE0\x9F\xBF");      // overlong
  expect_replaced("\xF0\x8F\xBF\xBF");  // overlong
  expect_replaced("\xED\xA0\x80");      // surrogate
  expect_replaced("\xED\xBF\xBF");      // surrogate
  expect_replaced("\xF4\x90\x80\x80");  // beyond U+10FFFF
  expect_replaced("\xE2\x82");          // truncated
  EXPECT_EQ(json_of("\xE2\x82z"), '"' + std::string{replacement} + std::string{replacement} + "z\"");
}

TEST(JsonString, IsAlwaysValid) {
  for (const std::string& text : test::hostile_strings()) {
    const std::string json = json_of(text);
    EXPECT_TRUE(nlohmann::json::accept(json)) << json;
    for (const char c : json) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
  }
}

TEST(Escaped, ShowsControlCharactersAsBytes) {
  EXPECT_EQ(escaped("a\x1b[31m\n"), R"(a\x1B[31m\x0A)");
  EXPECT_EQ(escaped("\xC2\x9B"), R"(\xC2\x9B)");
  EXPECT_EQ(escaped("\x9B"), R"(\x9B)");
  EXPECT_EQ(escaped("\x7F"), R"(\x7F)");
  EXPECT_EQ(escaped(R"(c:\x)"), R"(c:\\x)");
  EXPECT_EQ(escaped("\"caf\xC3\xA9\""), "\"caf\xC3\xA9\"");
}

TEST(Escaped, ShowsCharactersThatReorderOrHideText) {
  EXPECT_EQ(escaped("\xE2\x80\xAE"), R"(\xE2\x80\xAE)");  // right-to-left override
  EXPECT_EQ(escaped("\xE2\x81\xA6"), R"(\xE2\x81\xA6)");  // left-to-right isolate
  EXPECT_EQ(escaped("\xEF\xBB\xBF"), R"(\xEF\xBB\xBF)");  // byte order mark
  EXPECT_EQ(escaped("\xE2\x80\xA8"), R"(\xE2\x80\xA8)");  // line separator
}

TEST(Escaped, EscapesEveryControlCharacter) {
  for (const std::string& text : test::hostile_strings()) {
    for (const std::string& shown : {escaped(text), in_quotes(text), column(text, 400)}) {
      for (const char c : shown) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
      EXPECT_EQ(shown.find("\xC2\x9B"), std::string::npos);
      // What is left is UTF-8: a stray C1 byte would control terminals that are not in UTF-8 mode.
      EXPECT_TRUE(nlohmann::json::accept(json_of(shown)));
      EXPECT_EQ(json_of(shown).find(replacement), std::string::npos);
    }
  }
}

TEST(PrintableMessage, KeepsLinesAndWhatIsEscapedAlready) {
  EXPECT_EQ(printable_message(""), "");
  EXPECT_EQ(printable_message("rtev-bpf: a\\x1B \"b\"\n\thint: \xC2\xB5s\n"),
            "rtev-bpf: a\\x1B \"b\"\n\thint: \xC2\xB5s\n");
  EXPECT_EQ(printable_message("a\x1B[31m\r\n\x7F"), "a\\x1B[31m\\x0D\n\\x7F");
  for (const std::string& text : test::hostile_strings()) {
    EXPECT_EQ(test::terminal_danger(printable_message(text)), "");
    EXPECT_EQ(printable_message(escaped(text)), escaped(text));
  }
}

TEST(Quoted, EscapesQuotes) {
  EXPECT_EQ(in_quotes(""), R"("")");
  EXPECT_EQ(in_quotes(R"(say "hi")"), R"("say \"hi\"")");
  EXPECT_EQ(in_quotes("\n\""), R"("\x0A\"")");
}

TEST(Column, PadsAndCutsBetweenCharacters) {
  EXPECT_EQ(column("abc", 5), "abc  ");
  EXPECT_EQ(column("abcdef", 5), "abcde");
  EXPECT_EQ(column("", 2), "  ");
  EXPECT_EQ(column("\xC3\xA9\xC3\xA9\xC3\xA9", 2), "\xC3\xA9\xC3\xA9");
  EXPECT_EQ(column("abc\n", 6), "abc   ");  // "\x0A" does not fit
  EXPECT_EQ(column("abc\n", 7), R"(abc\x0A)");
  EXPECT_EQ(column("a\\b", 3), R"(a\\)");
}

TEST(Printable, AgreesWithEscaped) {
  EXPECT_TRUE(is_printable(""));
  EXPECT_TRUE(is_printable("caf\xC3\xA9 \"x\""));
  EXPECT_FALSE(is_printable("a\\b"));
  for (const std::string& text : test::hostile_strings()) EXPECT_EQ(is_printable(text), escaped(text) == text);
}

}  // namespace
}  // namespace rtev
