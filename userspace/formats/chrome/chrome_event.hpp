// SPDX-License-Identifier: MIT
// One trace event in JSON under construction.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include "base/escape.hpp"
#include "base/text_buffer.hpp"

namespace rtev {

/// Calls must follow the order of the members: start, name, further keys, args, finish.
class ChromeEvent {
 public:
  explicit ChromeEvent(TextBuffer& out) : out_(out) {}

  /// What "ts" counts from. Earlier times are taken for this one.
  void set_origin(std::uint64_t origin_ns) { origin_ns_ = origin_ns; }

  void start(char phase, std::uint64_t time, std::int32_t pid, std::int32_t tid) {
    out_.add(R"({"ph":")", phase, R"(","ts":)");
    add_microseconds(since_origin(time));
    out_.add(safe_digit, R"(,"pid":)", pid, R"(,"tid":)", tid);
    is_first_ = false;
    depth_ = 1;
  }
  /// About a thread, or about the process where both are the same.
  void start_metadata(std::string_view name, std::int32_t pid, std::int32_t tid) {
    out_.add(R"({"ph":"M","name":")", name, R"(","pid":)", pid, R"(,"tid":)", tid);
    is_first_ = false;
    depth_ = 1;
    args();
  }

  void name(std::string_view name, std::string_view category) {
    out_.add(R"(,"cat":")", category, R"(","name":)");
    add_json_string(out_, name);
  }
  void text(std::string_view key, std::string_view value) {
    add_key(key);
    add_json_string(out_, value);
  }
  void number(std::string_view key, std::integral auto value) {
    add_key(key);
    out_.add(value);
  }
  void truth(std::string_view key) {
    add_key(key);
    out_.add("true");
  }
  void complete(std::uint64_t duration_ns) {
    add_key("dur");
    add_microseconds(duration_ns);
    out_.add(safe_digit);
  }
  /// On the scale of "ts".
  void time(std::string_view key, std::uint64_t time) { duration(key, since_origin(time)); }
  void duration(std::string_view key, std::uint64_t ns) {
    add_key(key);
    add_microseconds(ns);
  }
  /// Two lower-case hex digits a byte.
  void hex(std::string_view key, std::string_view bytes) {
    add_key(key);
    out_.add('"');
    out_.add_hex(bytes);
    out_.add('"');
  }
  template <typename Range>
  void numbers(std::string_view key, const Range& values) {
    add_key(key);
    char separator = '[';
    for (const auto value : values) {
      out_.add(separator, value);
      separator = ',';
    }
    out_.add(separator == '[' ? "[]" : "]");
  }
  template <typename Range>
  void texts(std::string_view key, const Range& values) {
    add_key(key);
    char separator = '[';
    for (const auto& value : values) {
      out_.add(separator);
      add_json_string(out_, value);
      separator = ',';
    }
    out_.add(separator == '[' ? "[]" : "]");
  }

  /// What follows belongs to "args". May be called again.
  void args() {
    if (depth_ == 1) begin_object("args");
  }
  void begin_object(std::string_view key) {
    add_key(key);
    out_.add('{');
    is_first_ = true;
    ++depth_;
  }
  void end_object() {
    out_.add('}');
    is_first_ = false;
    --depth_;
  }
  void finish() {
    while (depth_ > 0) end_object();
  }

 private:
  /// Follows the three decimals of a time that viewers make nanoseconds of: Perfetto multiplies by 1000 and drops the
  /// rest, which takes one ns in a hundred for the one before. Neither dropping nor rounding goes wrong with it.
  static constexpr char safe_digit = '2';

  void add_key(std::string_view key) {
    if (!is_first_) out_.add(',');
    is_first_ = false;
    add_json_string(out_, key);
    out_.add(':');
  }
  std::uint64_t since_origin(std::uint64_t time) const { return time > origin_ns_ ? time - origin_ns_ : 0; }
  void add_microseconds(std::uint64_t ns) {
    const auto fraction = static_cast<unsigned>(ns % 1000);
    const auto digit = [](unsigned number) { return static_cast<char>('0' + number); };
    out_.add(ns / 1000, '.', digit(fraction / 100), digit(fraction / 10 % 10), digit(fraction % 10));
  }

  TextBuffer& out_;
  std::uint64_t origin_ns_ = 0;
  unsigned depth_ = 0;     ///< objects to be closed
  bool is_first_ = false;  ///< in its object: no comma before it
};

}  // namespace rtev
