// SPDX-License-Identifier: MIT
// The Fuchsia trace format (FXT): limits, types and references that FxtWriter and FxtReader share. Both cover what
// rtev-bpf's recordings and Jane Street's `tracing` library use: one provider, strings, threads, events of all types,
// process and thread names, userspace objects, context switches and wakeups.
// Source: https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format. Words have 8 bytes and are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace rtev::fxt {

/// The first word of every trace.
inline constexpr std::uint64_t magic = 0x0016547846040010;

inline constexpr std::size_t word_bytes = 8;
/// Of a record, including its header: the size field has 12 bits.
inline constexpr std::size_t max_record_words = 4095;
inline constexpr std::size_t max_arguments = 15;
inline constexpr std::size_t max_string_bytes = 32'000;
inline constexpr std::size_t max_provider_name_bytes = 255;
/// Slots of the string table and of the thread table begin at 1. 0 means the empty string, and an inline thread.
inline constexpr std::uint16_t max_string_slot = 0x7fff;
inline constexpr std::uint8_t max_thread_slot = 0xff;
/// One tick is one nanosecond: the default of the format, and the only unit that viewers convert without rounding.
inline constexpr std::uint64_t default_ticks_per_second = 1'000'000'000;
/// Weight of the idle task (tid 0) in a context switch.
inline constexpr std::int32_t idle_weight = std::numeric_limits<std::int32_t>::min();

enum class EventType : std::uint8_t {
  instant = 0,
  counter = 1,  ///< extra word: counter id
  duration_begin = 2,
  duration_end = 3,
  duration_complete = 4,  ///< extra word: time of the end
  async_begin = 5,        ///< extra word of the three async types: async id
  async_instant = 6,
  async_end = 7,
  flow_begin = 8,  ///< extra word of the three flow types: flow id
  flow_step = 9,
  flow_end = 10,
};
using enum EventType;

/// True if an event of this type has an extra word after its arguments.
constexpr bool has_extra_word(EventType type) {
  return type == EventType::counter || type >= EventType::duration_complete;
}

/// The format's null (0) is not supported.
enum class ArgumentType : std::uint8_t {
  int32 = 1,
  uint32 = 2,
  int64 = 3,
  uint64 = 4,
  floating = 5,  ///< a double
  string = 6,
  pointer = 7,
  koid = 8,  ///< id of a kernel object: a pid, a tid
  boolean = 9,
  blob = 10,
};

/// State of the thread that leaves a CPU. The format has none for uninterruptible sleep.
enum class ThreadState : std::uint8_t { created = 0, running = 1, suspended = 2, blocked = 3, dying = 4, dead = 5 };

/// Object types of the Zircon kernel; viewers ignore all but these two.
enum class KernelObjectType : std::uint8_t { process = 1, thread = 2 };

/// How a record refers to a string: empty, a slot of the string table, or bytes in the record itself (inline).
struct StringRef {
  std::uint16_t bits = 0;

  static constexpr std::uint16_t inline_bit = 0x8000;

  constexpr bool is_empty() const { return bits == 0; }
  constexpr bool is_inline() const { return (bits & inline_bit) != 0; }
  /// If not inline; 0 for the empty string.
  constexpr std::uint16_t slot() const { return bits; }
  /// If inline.
  constexpr std::size_t inline_bytes() const { return bits & 0x7fffu; }
  friend constexpr bool operator==(StringRef, StringRef) = default;
};

/// How a record refers to a thread: a slot of the thread table, or pid and tid in the record itself (inline).
struct ThreadRef {
  std::uint8_t bits = 0;

  constexpr bool is_inline() const { return bits == 0; }
  constexpr std::uint8_t slot() const { return bits; }
  friend constexpr bool operator==(ThreadRef, ThreadRef) = default;
};

std::string_view to_string(EventType type);     ///< "duration begin"; "unknown" for other values
std::string_view to_string(ArgumentType type);  ///< "int32"; "unknown" for other values

}  // namespace rtev::fxt
