// SPDX-License-Identifier: MIT
// Events composed ahead, for FxtWriter's fast path: all of an event's header is known but its time and values.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "rtev/fxt.hpp"
#include "rtev/fxt_records.hpp"

namespace rtev {
class FxtWriter;
}

namespace rtev::fxt {

/// The extra word of an event, which FxtWriter::write wants right after the time.
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

/// An argument as FxtWriter::compose declares it.
struct Parameter {
  ArgumentType type;
  StringRef name;
};

/// What an event takes, in a word, so that one comparison tells whether it is given that: from the lowest bits up four
/// bits for each argument (its type + 1), in the highest four the kind of the extra word.
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
  return (static_cast<Signature>(type) + 1) << (4 * index);
}

/// Of no event; nothing that is given matches it.
inline constexpr Signature invalid_signature = ~Signature{0};

template <typename T>
concept ExtraWord =
    std::same_as<T, CounterId> || std::same_as<T, EndTime> || std::same_as<T, AsyncId> || std::same_as<T, FlowId>;

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
  static_assert(sizeof...(Values) <= max_arguments, "a record has 15 arguments at most");
  Signature signature = 0;
  [[maybe_unused]] std::size_t index = 0;
  ((signature |= signature_part(argument_type_of<Values>(), index++)), ...);
  return signature;
}

/// An event of known type, thread, category, name and parameters. A small value, good for the life of the writer that
/// composed it and under its provider. Made by FxtWriter::compose.
class ComposedEvent {
 public:
  /// Writes nothing: write() refuses it.
  constexpr ComposedEvent() = default;

  /// The same event of another thread, category or name. References must be those of slots: an inline one gives an
  /// event that write() refuses.
  constexpr ComposedEvent with_thread(ThreadRef thread) const {
    return with(std::uint64_t{0xff} << 24, std::uint64_t{thread.bits} << 24, !thread.is_inline());
  }
  constexpr ComposedEvent with_category(StringRef category) const {
    return with(std::uint64_t{0xffff} << 32, std::uint64_t{category.bits} << 32, !category.is_inline());
  }
  constexpr ComposedEvent with_name(StringRef name) const {
    return with(std::uint64_t{0xffff} << 48, std::uint64_t{name.bits} << 48, !name.is_inline());
  }

  /// False if it could not be composed, or took an inline reference.
  constexpr bool valid() const { return signature_ != invalid_signature; }
  /// What it was composed of; meaningless if it is not valid().
  constexpr EventType type() const { return static_cast<EventType>(header_ >> 16 & 15); }
  constexpr ThreadRef thread() const { return {static_cast<std::uint8_t>(header_ >> 24)}; }
  constexpr StringRef category() const { return {static_cast<std::uint16_t>(header_ >> 32)}; }
  constexpr StringRef name() const { return {static_cast<std::uint16_t>(header_ >> 48)}; }

 private:
  friend class rtev::FxtWriter;

  constexpr ComposedEvent(std::uint64_t header, Signature signature, const std::uint64_t* arguments)
      : header_(header), signature_(signature), arguments_(arguments) {}

  constexpr ComposedEvent with(std::uint64_t mask, std::uint64_t bits, bool good) const {
    return {(header_ & ~mask) | bits, good ? signature_ : invalid_signature, arguments_};
  }

  std::uint64_t header_ = 0;  ///< with the size of the record, as far as it does not depend on values
  Signature signature_ = invalid_signature;
  const std::uint64_t* arguments_ = nullptr;  ///< headers of the arguments, owned by the writer
};

}  // namespace rtev::fxt
