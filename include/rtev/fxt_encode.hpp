// SPDX-License-Identifier: MIT
// How the values of arguments become words: what FxtWriter's fast path is made of. Not for use by others.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "rtev/fxt.hpp"
#include "rtev/fxt_records.hpp"

namespace rtev::fxt::encode {

static_assert(std::endian::native == std::endian::little, "words are stored as they lie in memory");

/// Words of an argument whose text or blob, if it has one, is empty or not inline.
constexpr std::size_t fixed_words(ArgumentType type) {
  using enum ArgumentType;
  return type == int64 || type == uint64 || type == floating || type == pointer || type == koid ? 2 : 1;
}

/// More than any record may have, so that one comparison at the end finds what is too large.
inline constexpr std::size_t too_many_words = max_record_words + 1;

constexpr std::size_t text_words(std::string_view text) {
  return text.size() <= max_string_bytes ? stream_words(text.size()) : too_many_words;
}

constexpr std::size_t payload_words(std::size_t bytes) {
  return bytes <= max_record_words * word_bytes ? stream_words(bytes) : too_many_words;
}

/// How a record refers to a text: by its slot, or inline by its length.
constexpr std::uint64_t text_bits(const Text& text) {
  const auto bytes = text.inline_text().size();
  return bytes == 0 ? text.ref().bits : StringRef::inline_bit | bytes;
}

inline std::uint64_t* put_stream(std::uint64_t* out, const void* data, std::size_t bytes) {
  if (bytes == 0) return out;
  const std::size_t words = stream_words(bytes);
  out[words - 1] = 0;
  std::memcpy(out, data, bytes);
  return out + words;
}

/// Text and blobs: what of an argument is a stream in the record.
template <ArgumentValue T>
inline constexpr bool is_stream = (TextLike<T> && !std::same_as<T, StringRef>) || std::same_as<T, Blob>;

/// Words that a value adds to fixed_words().
template <ArgumentValue T>
constexpr std::size_t added_words(const T& value) {
  if constexpr (std::same_as<T, Blob>)
    return payload_words(value.bytes.size());
  else if constexpr (is_stream<T>)
    return text_words(Text(value).inline_text());
  else
    return 0;
}

/// True for a reference that claims text in the record without having it.
template <ArgumentValue T>
constexpr bool is_dangling(const T& value) {
  if constexpr (TextLike<T>)
    return Text(value).ref().is_inline();
  else
    return false;
}

/// Stores an argument; `header` has its type, its name and the size of fixed_words(). Returns what lies behind it.
template <ArgumentValue T>
std::uint64_t* put_argument(std::uint64_t* out, std::uint64_t header, const T& value) {
  constexpr ArgumentType type = argument_type_of<T>();
  if constexpr (std::same_as<T, Blob>) {
    const std::size_t bytes = value.bytes.size();
    *out = header + (stream_words(bytes) << 4) + (std::uint64_t{bytes} << 32);
    return put_stream(out + 1, value.bytes.data(), bytes);
  } else if constexpr (TextLike<T>) {
    const Text text(value);
    const std::string_view inlined = text.inline_text();
    *out = header + (stream_words(inlined.size()) << 4) + (text_bits(text) << 32);
    return put_stream(out + 1, inlined.data(), inlined.size());
  } else if constexpr (fixed_words(type) == 2) {
    out[0] = header;
    out[1] = value_bits(value);
    return out + 2;
  } else {
    *out = header + (value_bits(value) << 32);
    return out + 1;
  }
}

}  // namespace rtev::fxt::encode
