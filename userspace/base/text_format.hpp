// SPDX-License-Identifier: MIT
// fmt for text that is not written often: print() into a TextBuffer, and values in readable formats.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/escape.hpp"
#include "base/text_buffer.hpp"
#include "base/units.hpp"

namespace rtev {

/// As add_duration(): "1.23ms".
struct Duration {
  std::uint64_t ns;
};
/// As add_size(): "34.5 MB".
struct Size {
  std::uint64_t bytes;
};
/// As TextBuffer::add_grouped(): "1,234".
struct Grouped {
  std::uint64_t number;
};
/// "1 word", "1,234 words".
struct Counted {
  std::uint64_t count;
  std::string_view singular, plural;
};
/// As add_quoted().
struct Quoted {
  std::string_view text;
};
/// As add_escaped().
struct Escaped {
  std::string_view text;
};

inline void append(TextBuffer& out, const Duration& value) {
  add_duration(out, value.ns);
}
inline void append(TextBuffer& out, const Size& value) {
  add_size(out, value.bytes);
}
inline void append(TextBuffer& out, const Grouped& value) {
  out.add_grouped(value.number);
}
inline void append(TextBuffer& out, const Counted& value) {
  out.add_grouped(value.count);
  out.add(' ', value.count == 1 ? value.singular : value.plural);
}
inline void append(TextBuffer& out, const Quoted& value) {
  add_quoted(out, value.text);
}
inline void append(TextBuffer& out, const Escaped& value) {
  add_escaped(out, value.text);
}

/// As the formatter does. One function, so that the files with texts do not all compile fmt's code for it.
fmt::appender format_text(const fmt::formatter<std::string_view>& formatter, std::string_view text,
                          fmt::format_context& context);

template <typename... Args>
void print(TextBuffer& out, fmt::format_string<Args...> format, Args&&... args) {
  out.add(std::string_view{fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace rtev

/// Any type with an append() is formatted as text: width and alignment are those of text.
template <typename Value>
  requires requires(rtev::TextBuffer& out, const Value& value) { append(out, value); }
struct fmt::formatter<Value> : fmt::formatter<std::string_view> {
  fmt::appender format(const Value& value, fmt::format_context& context) const {
    rtev::TextBuffer text;
    append(text, value);
    return rtev::format_text(*this, text.text(), context);
  }
};
