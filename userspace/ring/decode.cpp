// SPDX-License-Identifier: MIT
#include "ring/decode.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "rtev/layout.hpp"

namespace rtev {
namespace {

enum class Form : std::uint8_t {
  plain,    ///< header, time and at most one word of value
  padding,  ///< no time, no event
  alloc,
  custom,
};

/// What a message of one type may look like.
struct Shape {
  std::uint8_t shortest = 0xff;  ///< words; 0xff: no such type
  std::uint16_t longest = 0;
  EventKind kind{};
  Form form = Form::plain;
};

/// By the user bit and the four bits of the type, which lie together in the header word.
constexpr std::array<Shape, 32> shapes = [] {
  std::array<Shape, 32> table{};
  table[message::padding] = {1, message::max_words, {}, Form::padding};
  // RING_STOP is written without a datum, all other lifecycle events with one.
  table[message::lifecycle] = {2, 3, EventKind::lifecycle, Form::plain};
  table[message::begin] = {2, 2, EventKind::begin, Form::plain};
  table[message::end] = {2, 2, EventKind::end, Form::plain};
  table[message::counter] = {3, 3, EventKind::counter, Form::plain};
  table[message::alloc] = {2 + alloc_bucket_count, 2 + alloc_bucket_count, EventKind::alloc, Form::alloc};
  constexpr unsigned user = message::user_bit >> message::type_shift;
  table[user | message::unit] = {2, 2, EventKind::user_unit, Form::plain};
  table[user | message::integer] = {3, 3, EventKind::user_int, Form::plain};
  table[user | message::span_begin] = {2, 2, EventKind::user_begin, Form::plain};
  table[user | message::span_end] = {2, 2, EventKind::user_end, Form::plain};
  table[user | message::custom] = {3, message::max_words, EventKind::user_custom, Form::custom};
  return table;
}();

/// Bytes of a custom event's payload words; -1 if its last byte, which tells, is no such count. OCaml's convention for
/// strings: the last byte of the last word is the number of bytes unused before it.
std::ptrdiff_t custom_size(const std::uint64_t* payload, std::size_t words) {
  const auto unused = reinterpret_cast<const unsigned char*>(payload + words)[-1];
  return unused < sizeof(std::uint64_t) ? static_cast<std::ptrdiff_t>(words * sizeof(std::uint64_t)) - 1 - unused : -1;
}

/// Writes an event with three word stores. The compiler would store the small fields one by one, and would put
/// an array of the three words together on the stack only to wait for it there.
void store(Event* event, std::uint64_t time, std::uint64_t value, std::uint32_t source, std::uint64_t id,
           EventKind kind) {
  if constexpr (std::endian::native == std::endian::little) {
    static_assert(sizeof(Event) == 24 && offsetof(Event, time) == 0 && offsetof(Event, value) == 8 &&
                  offsetof(Event, source) == 16 && offsetof(Event, id) == 20 && offsetof(Event, kind) == 22 &&
                  offsetof(Event, flags) == 23);
    const std::uint64_t rest = source | id << 32 | static_cast<std::uint64_t>(kind) << 48;
    auto* const raw = reinterpret_cast<std::byte*>(event);
    std::memcpy(raw, &time, sizeof time);
    std::memcpy(raw + 8, &value, sizeof value);
    std::memcpy(raw + 16, &rest, sizeof rest);
  } else {
    *event = {time, value, source, static_cast<std::uint16_t>(id), kind, 0};
  }
}

}  // namespace

DecodeResult decode_messages(std::span<const std::uint64_t> words, std::uint32_t source, std::int64_t clock_offset_ns,
                             Event* events, std::byte* payloads, std::size_t payload_begin) {
  const std::uint64_t* at = words.data();
  const std::uint64_t* const end = at + words.size();
  const auto clock_offset = static_cast<std::uint64_t>(clock_offset_ns);
  Event* event = events;
  std::size_t payload_end = payload_begin;
  bool corrupt = false;

  while (at != end) {
    const std::uint64_t header = *at;
    const std::uint64_t length = header >> message::length_shift;
    const Shape& shape = shapes[header >> message::type_shift & 31];
    const std::uint64_t id = header >> message::id_shift & 0x1fff;
    if ((header & message::zero_mask) != 0 || length < shape.shortest || length > shape.longest) [[unlikely]] {
      corrupt = true;
      break;
    }
    if (length > static_cast<std::uint64_t>(end - at)) break;

    if (shape.form == Form::plain) [[likely]] {
      // A mix of messages with and without value is nothing a branch could be predicted from.
      const std::uint64_t behind_time = at[2];
      store(event++, at[1] + clock_offset, length > 2 ? behind_time : 0, source, id, shape.kind);
    } else if (shape.form != Form::padding) {
      std::ptrdiff_t size = alloc_bucket_count * sizeof(std::uint64_t);
      if (shape.form == Form::custom) size = custom_size(at + 2, length - 2);
      if (size < 0) {
        corrupt = true;
        break;
      }
      const auto bytes = static_cast<std::size_t>(size);
      std::memcpy(payloads + payload_end, at + 2, bytes);
      store(event++, at[1] + clock_offset, Batch::payload_ref(payload_end, bytes), source, id, shape.kind);
      payload_end += bytes;
    }
    at += length;
  }
  return {.consumed = static_cast<std::size_t>(at - words.data()),
          .events = static_cast<std::size_t>(event - events),
          .payload_bytes = payload_end - payload_begin,
          .corrupt = corrupt};
}

}  // namespace rtev
