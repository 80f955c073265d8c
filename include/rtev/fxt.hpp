// SPDX-License-Identifier: MIT
// The Fuchsia trace format (FXT): numbers and references that its writer and its reader share. The layouts are those of
// the trace-format reference at https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace rtev::fxt {

/// The first word of every trace, a record of its own: little-endian, as all words are.
inline constexpr std::uint64_t magic = 0x0016547846040010;

inline constexpr std::size_t word_bytes = 8;
/// Of any record, its header included: what 12 bits can say.
inline constexpr std::size_t max_record_words = 4095;
inline constexpr std::size_t max_arguments = 15;
inline constexpr std::size_t max_string_bytes = 32'000;
inline constexpr std::size_t max_provider_name_bytes = 255;
/// Of a log message and of a blob record's payload, if the record has room for it: what 15 bits can say.
inline constexpr std::size_t max_payload_bytes = 0x7fff;
/// Slots of the string and the thread table count from 1: 0 means the empty string, and an inline thread.
inline constexpr std::uint16_t max_string_slot = 0x7fff;
inline constexpr std::uint8_t max_thread_slot = 0xff;
/// Of a trace without an initialization record, and what viewers convert without rounding: a tick is a nanosecond.
inline constexpr std::uint64_t default_ticks_per_second = 1'000'000'000;
/// Weight that marks the idle task (tid 0) in a context switch.
inline constexpr std::int32_t idle_weight = std::numeric_limits<std::int32_t>::min();

enum class RecordType : std::uint8_t {
  metadata = 0,
  initialization = 1,
  string = 2,
  thread = 3,
  event = 4,
  blob = 5,
  userspace_object = 6,
  kernel_object = 7,
  scheduling = 8,
  log = 9,
  profiler = 10,
  large = 15,  ///< has a size of 32 bits; viewers that read 12 of them lose their way, so the writer makes none
};

enum class MetadataType : std::uint8_t { provider_info = 1, provider_section = 2, provider_event = 3, trace_info = 4 };

enum class ProviderEvent : std::uint8_t { buffer_full = 0 };

enum class EventType : std::uint8_t {
  instant = 0,
  counter = 1,  ///< extra word: counter id
  duration_begin = 2,
  duration_end = 3,
  duration_complete = 4,  ///< extra word: time of its end
  async_begin = 5,        ///< extra word of these three: async id
  async_instant = 6,
  async_end = 7,
  flow_begin = 8,  ///< extra word of these three: flow id
  flow_step = 9,
  flow_end = 10,
};
using enum EventType;

/// True if events of this type end with a word of their own, after their arguments.
constexpr bool has_extra_word(EventType type) {
  return type == EventType::counter || type >= EventType::duration_complete;
}

enum class ArgumentType : std::uint8_t {
  null = 0,
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

enum class SchedulingType : std::uint8_t { legacy_switch = 0, context_switch = 1, wakeup = 2 };

/// State of the thread that leaves a CPU. The format has no uninterruptible sleep.
enum class ThreadState : std::uint8_t { created = 0, running = 1, suspended = 2, blocked = 3, dying = 4, dead = 5 };

/// Object types of the Zircon kernel; others than these two mean nothing to viewers.
enum class KernelObjectType : std::uint8_t { process = 1, thread = 2 };

enum class BlobType : std::uint8_t { data = 1, last_branch = 2, perfetto = 3 };

/// How a record names a string: not at all, by a slot of the string table, or by bytes in the record itself.
struct StringRef {
  std::uint16_t bits = 0;

  static constexpr std::uint16_t inline_bit = 0x8000;

  constexpr bool is_empty() const { return bits == 0; }
  constexpr bool is_inline() const { return (bits & inline_bit) != 0; }
  /// Of one that is not inline; 0 for the empty string.
  constexpr std::uint16_t slot() const { return bits; }
  /// Of one that is inline.
  constexpr std::size_t inline_bytes() const { return bits & 0x7fffu; }
  friend constexpr bool operator==(StringRef, StringRef) = default;
};

/// How a record names a thread: by a slot of the thread table, or (0) by the pid and tid in the record itself.
struct ThreadRef {
  std::uint8_t bits = 0;

  constexpr bool is_inline() const { return bits == 0; }
  constexpr std::uint8_t slot() const { return bits; }
  friend constexpr bool operator==(ThreadRef, ThreadRef) = default;
};

/// Words that so many bytes take as a stream: padded with zeros to whole words. Not for bytes near SIZE_MAX.
constexpr std::size_t stream_words(std::size_t bytes) {
  return (bytes + word_bytes - 1) / word_bytes;
}

std::string_view to_string(EventType type);     ///< "duration begin"; "unknown" for others
std::string_view to_string(ArgumentType type);  ///< "int32"; "unknown" for others

}  // namespace rtev::fxt
