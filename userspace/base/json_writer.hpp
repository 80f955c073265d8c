// SPDX-License-Identifier: MIT
// Writes JSON: sets commas, and makes every string valid UTF-8.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>

#include "base/escape.hpp"
#include "base/text_buffer.hpp"

namespace rtev {

/// Appends JSON to a buffer of its own or of another. Fast enough for a line an event: nothing is virtual, and nothing
/// is allocated once the buffer has grown. Names of members must be plain ASCII. Not thread-safe.
class JsonWriter {
 public:
  JsonWriter() : out_(own_) {}
  explicit JsonWriter(TextBuffer& out) : out_(out) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  /// Runs `members` between braces, or `elements` between brackets.
  template <typename Members>
  void object(Members&& members) {
    begin_object();
    members();
    end_object();
  }
  template <typename Elements>
  void array(Elements&& elements) {
    begin('[');
    elements();
    end(']');
  }
  void begin_object() { begin('{'); }
  void end_object() { end('}'); }

  /// The next value is that of this member.
  JsonWriter& key(std::string_view name) {
    out_.add_with(name.size() + around_name, [&](char* at) { return put_key(at, name); });
    first_ = true;
    return *this;
  }

  /// The same for any text as name.
  JsonWriter& text_key(std::string_view name) {
    value(name);
    out_.add(':');
    first_ = true;
    return *this;
  }

  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  void value(Number number) {
    separate();
    out_.add(number);
  }
  void value(std::same_as<bool> auto truth) { raw(truth ? "true" : "false"); }
  /// With 6 decimals, never with an exponent; null if it is not finite.
  void value(std::floating_point auto number) {
    std::array<char, 400> text;
    const auto written =
        std::to_chars(text.data(), text.data() + text.size(), double{number}, std::chars_format::fixed, 6);
    raw(std::isfinite(number) ? std::string_view{text.data(), written.ptr} : std::string_view{"null"});
  }
  void value(std::string_view text) {
    separate();
    add_json_string(out_, text);
  }
  void value(std::nullptr_t) { raw("null"); }
  /// null if there is no value.
  template <typename T>
  void value(const std::optional<T>& maybe) {
    maybe ? value(*maybe) : value(nullptr);
  }

  template <typename T>
  void member(std::string_view name, const T& of) {
    key(name).value(of);
  }
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  void member(std::string_view name, const Number& number) {
    constexpr std::size_t longest = 20;  // digits of UINT64_MAX, or sign and digits of INT64_MIN
    out_.add_with(name.size() + around_name + longest, [&](char* at) {
      at = put_key(at, name);
      return std::to_chars(at, at + longest, number).ptr;
    });
    first_ = false;
  }
  /// Text of plain ASCII without quotes and backslashes: a constant of the program.
  void plain_member(std::string_view name, std::string_view text) {
    out_.add_with(name.size() + around_name + text.size() + 2, [&](char* at) {
      at = put_key(at, name);
      *at++ = '"';
      std::memcpy(at, text.data(), text.size());
      at += text.size();
      *at++ = '"';
      return at;
    });
    first_ = false;
  }
  /// null if the text is empty.
  void text_or_null(std::string_view name, std::string_view text) {
    key(name);
    text.empty() ? value(nullptr) : value(text);
  }
  /// Two lower-case hex digits per byte.
  void hex(std::string_view name, std::span<const std::byte> bytes) {
    key(name);
    out_.add('"');
    out_.add_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    out_.add('"');
    first_ = false;
  }
  template <std::ranges::input_range Values>
  void values(std::string_view name, const Values& of) {
    key(name).array([&] {
      for (const auto& each : of) value(each);
    });
  }
  /// A value that is JSON already.
  void raw(std::string_view json) {
    separate();
    out_.add(json);
  }

  /// The next value is a document of its own.
  void restart() { first_ = true; }
  /// The next member follows others, which the caller wrote.
  void resume() { first_ = false; }
  std::string_view text() const { return out_.text(); }

 private:
  static constexpr std::size_t around_name = 4;  ///< comma, quotes, colon

  char* put_key(char* at, std::string_view name) const {
    *at = ',';
    if (!first_) ++at;
    *at++ = '"';
    std::memcpy(at, name.data(), name.size());
    at += name.size();
    *at++ = '"';
    *at++ = ':';
    return at;
  }
  void begin(char open) {
    separate();
    out_.add(open);
    first_ = true;
  }
  void end(char close) {
    out_.add(close);
    first_ = false;
  }
  void separate() {
    if (!first_) out_.add(',');
    first_ = false;
  }

  TextBuffer own_;
  TextBuffer& out_;
  bool first_ = true;  ///< no comma before the next value
};

}  // namespace rtev
