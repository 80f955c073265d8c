// SPDX-License-Identifier: MIT
// Composed events: an event without its time and values is prepared once, and written often by FxtWriter's fast path.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "rtev/fxt.hpp"
#include "rtev/fxt_records.hpp"

namespace rtev {
class FxtWriter;
}

namespace rtev::fxt {

/// The extra word of an event: the argument of FxtWriter::write() after the time.
struct CounterId {
  std::uint64_t value;
};
struct EndTime {
  std::uint64_t value;
};
struct AsyncId {
  std::uint64_t value;
};
struct FlowId {
  std::uint64_t value;
};

template <typename T>
concept ExtraWord =
    std::same_as<T, CounterId> || std::same_as<T, EndTime> || std::same_as<T, AsyncId> || std::same_as<T, FlowId>;

/// An argument as FxtWriter::compose() declares it.
struct Parameter {
  ArgumentType type;
  StringRef name;
};

namespace detail {

static_assert(std::endian::native == std::endian::little, "words are copied from memory");

/// The types of an event's extra word and arguments in one word, so that one comparison checks them: 4 bits for each
/// argument (its type, never 0) from the lowest up, ExtraKind in the highest 4 bits.
using Signature = std::uint64_t;

enum class ExtraKind : std::uint8_t { none, counter_id, end_time, async_id, flow_id };

constexpr ExtraKind extra_kind(EventType type) {
  if (type == EventType::counter) return ExtraKind::counter_id;
  if (type < EventType::duration_complete) return ExtraKind::none;
  if (type == EventType::duration_complete) return ExtraKind::end_time;
  return type <= EventType::async_end ? ExtraKind::async_id : ExtraKind::flow_id;
}

constexpr Signature signature_part(ExtraKind kind) {
  return static_cast<Signature>(kind) << 60;
}

constexpr Signature signature_part(ArgumentType type, std::size_t index) {
  return static_cast<Signature>(type) << (4 * index);
}

/// Of no event: matches no arguments.
inline constexpr Signature invalid_signature = ~Signature{0};

template <ExtraWord T>
consteval Signature signature_part() {
  if constexpr (std::same_as<T, CounterId>)
    return signature_part(ExtraKind::counter_id);
  else if constexpr (std::same_as<T, EndTime>)
    return signature_part(ExtraKind::end_time);
  else if constexpr (std::same_as<T, AsyncId>)
    return signature_part(ExtraKind::async_id);
  else
    return signature_part(ExtraKind::flow_id);
}

template <ArgumentValue... Values>
consteval Signature signature_of() {
  static_assert(sizeof...(Values) <= max_arguments, "a record has at most 15 arguments");
  Signature signature = 0;
  [[maybe_unused]] std::size_t index = 0;
  ((signature |= signature_part(argument_type_of<Values>(), index++)), ...);
  return signature;
}

/// Words of a stream: bytes padded with zeros to whole words.
constexpr std::size_t stream_words(std::size_t bytes) {
  return (bytes + word_bytes - 1) / word_bytes;
}

/// Words of an argument without inline text or blob.
constexpr std::size_t fixed_words(ArgumentType type) {
  using enum ArgumentType;
  return type == int64 || type == uint64 || type == floating || type == pointer || type == koid ? 2 : 1;
}

/// More than any record may have, so that one comparison of the sum finds a stream that is too large.
inline constexpr std::size_t too_many_words = max_record_words + 1;

constexpr std::size_t text_words(std::string_view text) {
  return text.size() <= max_string_bytes ? stream_words(text.size()) : too_many_words;
}

constexpr std::size_t blob_words(std::size_t bytes) {
  return bytes <= max_record_words * word_bytes ? stream_words(bytes) : too_many_words;
}

/// The StringRef of a text: its slot, or its length if it is inline.
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

/// True if values of this type may be a stream in the record.
template <ArgumentValue T>
inline constexpr bool is_stream = (TextLike<T> && !std::same_as<T, StringRef>) || std::same_as<T, Blob>;

/// Words of the stream of a value.
template <ArgumentValue T>
constexpr std::size_t added_words(const T& value) {
  if constexpr (std::same_as<T, Blob>)
    return blob_words(value.bytes.size());
  else if constexpr (is_stream<T>)
    return text_words(Text(value).inline_text());
  else
    return 0;
}

/// True for a reference to inline text without the text.
template <ArgumentValue T>
constexpr bool is_dangling(const T& value) {
  if constexpr (TextLike<T>)
    return Text(value).ref().is_inline();
  else
    return false;
}

/// Stores an argument; `header` has its type, its name and the size fixed_words(). Returns the place after it.
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

}  // namespace detail

/// An event of fixed type, thread, category, name and parameters, made by FxtWriter::compose(). A small value that is
/// valid as long as its writer.
class ComposedEvent {
 public:
  /// An invalid event.
  constexpr ComposedEvent() = default;

  /// The same event with another thread, category or name. An inline reference gives an invalid event.
  constexpr ComposedEvent with_thread(ThreadRef thread) const {
    return with(std::uint64_t{0xff} << 24, std::uint64_t{thread.bits} << 24, !thread.is_inline());
  }
  constexpr ComposedEvent with_category(StringRef category) const {
    return with(std::uint64_t{0xffff} << 32, std::uint64_t{category.bits} << 32, !category.is_inline());
  }
  constexpr ComposedEvent with_name(StringRef name) const {
    return with(std::uint64_t{0xffff} << 48, std::uint64_t{name.bits} << 48, !name.is_inline());
  }

  /// False if compose() refused it or a reference is inline: write() refuses it, too.
  constexpr bool valid() const { return signature_ != detail::invalid_signature; }
  // Meaningless if it is not valid.
  constexpr EventType type() const { return static_cast<EventType>(header_ >> 16 & 15); }
  constexpr ThreadRef thread() const { return {static_cast<std::uint8_t>(header_ >> 24)}; }
  constexpr StringRef category() const { return {static_cast<std::uint16_t>(header_ >> 32)}; }
  constexpr StringRef name() const { return {static_cast<std::uint16_t>(header_ >> 48)}; }

 private:
  friend class rtev::FxtWriter;

  constexpr ComposedEvent(std::uint64_t header, detail::Signature signature, const std::uint64_t* arguments)
      : header_(header), signature_(signature), arguments_(arguments) {}

  constexpr ComposedEvent with(std::uint64_t mask, std::uint64_t bits, bool good) const {
    return {(header_ & ~mask) | bits, good ? signature_ : detail::invalid_signature, arguments_};
  }

  std::uint64_t header_ = 0;  ///< with the size of the record, as far as it does not depend on values
  detail::Signature signature_ = detail::invalid_signature;
  const std::uint64_t* arguments_ = nullptr;  ///< headers of the arguments, owned by the writer
};

}  // namespace rtev::fxt
