// SPDX-License-Identifier: MIT
#include "ring/decode.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "ring/layout.hpp"

namespace rtev {
namespace {

enum class Form : std::uint8_t {
  plain,    ///< header, time and at most one word of value
  padding,  ///< no time, no event
  alloc,
  custom,
};

/// The valid lengths of a message type, and its event.
struct Shape {
  std::uint8_t shortest = 0xff;  ///< words; 0xff: no such type
  std::uint16_t longest = 0;
  EventKind kind{};
  Form form = Form::plain;
};

/// By the user bit and the four bits of the type, which are adjacent in the header word.
constexpr std::array<Shape, 32> shapes = [] {
  std::array<Shape, 32> table{};
  table[message::padding] = {1, message::max_words, {}, Form::padding};
  // RING_STOP is written without a value, all other lifecycle events with one.
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

// Places of the small fields of an event in its last word.
constexpr bool is_little = std::endian::native == std::endian::little;
static_assert(is_little || std::endian::native == std::endian::big);
constexpr unsigned source_place = is_little ? 0 : 32, id_place = is_little ? 32 : 16, kind_place = is_little ? 48 : 8;
static_assert(sizeof(Event) == 24 && offsetof(Event, time) == 0 && offsetof(Event, value) == 8 &&
              offsetof(Event, source) == 16 && offsetof(Event, id) == 20 && offsetof(Event, kind) == 22 &&
              offsetof(Event, flags) == 23);

constexpr std::uint64_t id_mask = 0x1fff;

/// Nearly all messages have two or three words: the kind of their event, in its place, by the bits above the id in the
/// header word.
constexpr unsigned short_keys = 4 << 5;
constexpr std::uint64_t no_kind = ~std::uint64_t{0};
constexpr std::array<std::uint64_t, short_keys> short_kinds = [] {
  std::array<std::uint64_t, short_keys> kinds{};
  for (unsigned key = 0; key < short_keys; ++key) {
    const Shape& shape = shapes[key & 31];
    const unsigned length = key >> 5;
    const bool valid = shape.form == Form::plain && length >= shape.shortest && length <= shape.longest;
    kinds[key] = valid ? static_cast<std::uint64_t>(shape.kind) << kind_place : no_kind;
  }
  return kinds;
}();
/// Bits that are zero in the header of a short message: those of zero_mask, and the upper bits of the length.
constexpr std::uint64_t short_zeros = message::zero_mask | ~std::uint64_t{3} << message::length_shift;

/// The words can be in the ring itself, which the program writes: each that is looked at is loaded only once.
std::uint64_t load(const std::uint64_t* word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/// Size in bytes of a custom event's payload; -1 if it is not valid. OCaml's convention for strings: the last byte of
/// the last word is the number of unused bytes before it.
std::ptrdiff_t custom_size(const std::uint64_t* payload, std::size_t words) {
  const std::uint64_t last = load(payload + words - 1);
  const auto unused = std::bit_cast<std::array<unsigned char, sizeof last>>(last).back();
  return unused < sizeof(std::uint64_t) ? static_cast<std::ptrdiff_t>(words * sizeof(std::uint64_t)) - 1 - unused : -1;
}

/// Copies a payload of whole words, the last of which may be used in part.
void copy_payload(const std::uint64_t* from, std::size_t words, std::byte* to) {
  // A call of memcpy() takes as long as the rest of a short event.
  constexpr std::size_t max_short = 8;
  if (words > max_short) {
    std::memcpy(to, from, words * sizeof *from);
    return;
  }
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = load(from + i);
    std::memcpy(to + i * sizeof word, &word, sizeof word);
  }
}

/// Time and value of an event, which one instruction loads, adds or stores.
using TimeAndValue [[gnu::vector_size(16)]] = std::uint64_t;

/// Writes an event with two stores. The compiler would store the small fields one by one, or assemble the words on the
/// stack and stall on reading them back. `kind` is shifted to its place already.
void store(Event* event, TimeAndValue time_and_value, std::uint64_t source, std::uint64_t header, std::uint64_t kind) {
  const std::uint64_t id = (header >> message::id_shift & id_mask) << id_place;
  const std::uint64_t rest = source << source_place | id | kind;
  auto* const raw = reinterpret_cast<std::byte*>(event);
  std::memcpy(raw, &time_and_value, sizeof time_and_value);
  std::memcpy(raw + sizeof time_and_value, &rest, sizeof rest);
}

/// Decodes messages of two and three words up to the first of another length. The place of the next message depends on
/// the length of this one. A branch decides it instead of an addition: message lengths repeat, so the processor
/// predicts the branch and runs several messages ahead instead of waiting for each length. `headers` gets their bits.
void decode_short(const std::uint64_t*& position, const std::uint64_t* end, std::uint32_t source,
                  std::uint64_t clock_offset, Event*& next_event, std::uint64_t& headers) {
  if (end - position < 3) return;
  const std::uint64_t* const last = end - 3;
  const TimeAndValue offset{clock_offset, 0};
  const std::uint64_t* at = position;
  Event* event = next_event;
  std::uint64_t seen = 0;
  while (at <= last) {
    const std::uint64_t header = load(at);
    if ((header & short_zeros) != 0) [[unlikely]]
      break;
    const std::uint64_t key = header >> message::type_shift;
    const std::uint64_t kind = short_kinds[key];
    if (kind == no_kind) [[unlikely]]
      break;
    seen |= header;
    if (key >= 3 << 5) {
      TimeAndValue words;
      std::memcpy(&words, at + 1, sizeof words);
      store(event++, words + offset, source, header, kind);
      at += 3;
    } else {
      store(event++, TimeAndValue{load(at + 1)} + offset, source, header, kind);
      at += 2;
    }
  }
  position = at;
  next_event = event;
  headers |= seen;
}

}  // namespace

DecodeResult decode_messages(std::span<const std::uint64_t> words, std::uint32_t source, std::int64_t clock_offset_ns,
                             Event* events, std::byte* payloads, std::size_t payload_begin) {
  const std::uint64_t* at = words.data();
  const std::uint64_t* const end = at + words.size();
  const auto clock_offset = static_cast<std::uint64_t>(clock_offset_ns);
  Event* event = events;
  std::size_t payload_end = payload_begin;
  std::uint64_t headers = 0;
  bool corrupt = false;

  while (true) {
    decode_short(at, end, source, clock_offset, event, headers);
    if (at == end) break;
    const std::uint64_t header = load(at);
    headers |= header;
    const std::uint64_t length = header >> message::length_shift;
    const Shape& shape = shapes[header >> message::type_shift & 31];
    const std::uint64_t kind = static_cast<std::uint64_t>(shape.kind) << kind_place;
    if ((header & message::zero_mask) != 0 || length < shape.shortest || length > shape.longest) [[unlikely]] {
      corrupt = true;
      break;
    }
    if (length > static_cast<std::uint64_t>(end - at)) break;

    if (shape.form == Form::plain) {
      const std::uint64_t value = length > 2 ? load(at + 2) : 0;
      store(event++, TimeAndValue{load(at + 1) + clock_offset, value}, source, header, kind);
    } else if (shape.form != Form::padding) {
      std::ptrdiff_t size = alloc_bucket_count * sizeof(std::uint64_t);
      if (shape.form == Form::custom) size = custom_size(at + 2, length - 2);
      if (size < 0) {
        corrupt = true;
        break;
      }
      const auto bytes = static_cast<std::size_t>(size);
      // There is room for the bytes of the last word that are not used: the message has two more words.
      copy_payload(at + 2, length - 2, payloads + payload_end);
      const TimeAndValue of_payload{load(at + 1) + clock_offset, Batch::payload_ref(payload_end, bytes)};
      store(event++, of_payload, source, header, kind);
      payload_end += bytes;
    }
    at += length;
  }
  return {.consumed = static_cast<std::size_t>(at - words.data()),
          .events = static_cast<std::size_t>(event - events),
          .payload_bytes = payload_end - payload_begin,
          .corrupt = corrupt,
          .has_user_events = (headers & message::user_bit) != 0};
}

}  // namespace rtev
