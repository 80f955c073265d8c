// SPDX-License-Identifier: MIT
// JSON under construction: commas come by themselves, strings are made valid whatever their bytes.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/escape.hpp"
#include "base/text_buffer.hpp"

namespace rtev {

class JsonWriter {
 public:
  /// Runs `members` between braces, or `elements` between brackets.
  template <typename Members>
  void object(Members&& members) {
    nest('{', '}', members);
  }
  template <typename Elements>
  void array(Elements&& elements) {
    nest('[', ']', elements);
  }
  /// What comes next is the value of this member. Names are plain text.
  JsonWriter& key(std::string_view name) {
    separate();
    out_.add('"', name, R"(":)");
    first_ = true;
    return *this;
  }

  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  void value(Number number) {
    separate();
    out_.add(number);
  }
  void value(std::same_as<bool> auto truth) {
    separate();
    out_.add(std::string_view{truth ? "true" : "false"});
  }
  /// With 6 decimals, never with an exponent; null where it is no number.
  void value(std::floating_point auto number) {
    separate();
    std::array<char, 400> text;
    const auto written =
        std::to_chars(text.data(), text.data() + text.size(), double{number}, std::chars_format::fixed, 6);
    out_.add(std::isfinite(number) ? std::string_view{text.data(), written.ptr} : std::string_view{"null"});
  }
  void value(std::string_view text) {
    separate();
    add_json_string(out_, text);
  }
  /// null where there is nothing.
  template <typename T>
  void value(const std::optional<T>& maybe) {
    if (maybe) {
      value(*maybe);
    } else {
      separate();
      out_.add(std::string_view{"null"});
    }
  }

  template <typename T>
  void member(std::string_view name, const T& of) {
    key(name).value(of);
  }

  std::string_view text() const { return out_.text(); }

 private:
  template <typename Inside>
  void nest(char open, char close, Inside&& inside) {
    separate();
    out_.add(open);
    first_ = true;
    inside();
    out_.add(close);
    first_ = false;
  }
  void separate() {
    if (!first_) out_.add(',');
    first_ = false;
  }

  TextBuffer out_;
  bool first_ = true;
};

}  // namespace rtev
