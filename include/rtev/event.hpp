// SPDX-License-Identifier: MIT
// The event model: what every reader yields and every sink and analysis takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace rtev {

/// What an Event says. The first group is what OCaml's runtime writes, the last what the tracer and the kernel add.
enum class EventKind : std::uint8_t {
  begin,         ///< a runtime phase begins; id = phase
  end,           ///< a runtime phase ends; id = phase
  counter,       ///< id = counter, value = its value
  alloc,         ///< payload = 20 u64 bucket counts (instrumented runtime only)
  lifecycle,     ///< id = lifecycle id, value = its datum (0 where the message carries none)
  user_unit,     ///< id = user event
  user_int,      ///< id = user event, value = int64
  user_begin,    ///< id = user event
  user_end,      ///< id = user event
  user_custom,   ///< id = user event, payload = exactly the bytes the program's encoder made
  lost,          ///< payload = Loss; time = when a ring's stream resumes; of LossReason::dropped when the gap begins
  process,       ///< payload: userspace/timeline/records.hpp
  sched_switch,  ///< payload: userspace/timeline/records.hpp
  wakeup,        ///< payload: userspace/timeline/records.hpp
};
inline constexpr std::size_t event_kind_count = 14;

/// True where Event::value refers to bytes in the batch instead of being a number.
constexpr bool has_payload(EventKind kind) {
  return kind == EventKind::alloc || kind == EventKind::user_custom || kind >= EventKind::lost;
}

/// Event::flags
enum EventFlag : std::uint8_t {
  flag_late = 1,  ///< came out after events with a later time, or claimed a time that was still to come
};

/// One event: 24 bytes, trivially copyable, no names (those are resolved where the event is shown).
struct Event {
  std::uint64_t time;    ///< ns of CLOCK_MONOTONIC of the host
  std::uint64_t value;   ///< a number, or where the payload lies in the batch (see Batch::payload)
  std::uint32_t source;  ///< which ordered stream it came from: Source::pack()
  std::uint16_t id;      ///< meaning depends on kind
  EventKind kind;
  std::uint8_t flags;

  std::int64_t signed_value() const { return static_cast<std::int64_t>(value); }
};
static_assert(sizeof(Event) == 24 && std::is_trivially_copyable_v<Event>);

/// An ordered stream of events: the ring of one domain of one ring file, or one kernel buffer.
/// Ring files hold at most 4096 rings (runtime/caml/config.h, Max_domains_max), hence 12 bits.
struct Source {
  std::uint32_t slot;    ///< which ring file; slot 0 is the tracer's own and the kernel's streams
  std::uint16_t domain;  ///< index of the ring in the file, which OCaml calls the domain's id

  static constexpr unsigned domain_bits = 12;
  static constexpr std::uint32_t max_slot = (1u << (32 - domain_bits)) - 1;
  constexpr std::uint32_t pack() const { return slot << domain_bits | domain; }
  static constexpr Source unpack(std::uint32_t source) {
    return {source >> domain_bits, static_cast<std::uint16_t>(source & ((1u << domain_bits) - 1))};
  }
};

/// Event::id of EventKind::lost: why something could not be handed out.
enum class LossReason : std::uint16_t {
  overwritten,  ///< the program wrote over them before they were read
  corrupt,      ///< they made no sense and were skipped
  dropped,      ///< no words but scheduler records, that the kernel side had no room for (events of slot 0)
  overflow,  ///< events of a program without a ring, that the kernel side had no room for: the words they take in one
  unprobed,  ///< such a program's probes were off: how much was lost is not known, and Loss::words 0
};

std::string_view to_string(LossReason reason);

/// Payload of EventKind::lost.
struct Loss {
  /// 8-byte words of the ring, of which a typical event takes 2 or 3; of LossReason::dropped the number of records.
  std::uint64_t words;
  /// Time of the last event before the gap, 0 if there was none; of LossReason::dropped the first record's.
  std::uint64_t from_ns;
  /// Time of the first event after the gap, or when the ring was left; of LossReason::dropped the last record's.
  std::uint64_t to_ns;
};

/// Payload of EventKind::alloc: how many blocks were allocated by size in words:
/// buckets 0-9 one size each, 10-18 ten sizes each (10-19 ... 90-99), 19 for 100 words and more.
inline constexpr std::size_t alloc_bucket_count = 20;

/// Events with the bytes of their payloads. A view: valid only during the call that hands it out.
class Batch {
 public:
  Batch(std::span<const Event> events, std::span<const std::byte> payloads) : events_(events), payloads_(payloads) {}

  std::span<const Event> events() const { return events_; }
  std::span<const std::byte> payloads() const { return payloads_; }

  /// The bytes that belong to an event with has_payload(); empty for any other event.
  std::span<const std::byte> payload(const Event& event) const {
    if (!has_payload(event.kind)) return {};
    const std::size_t offset = event.value >> 32, size = static_cast<std::uint32_t>(event.value);
    if (offset > payloads_.size() || size > payloads_.size() - offset) return {};
    return payloads_.subspan(offset, size);
  }

  /// The payload as a record, if it is one of that size.
  template <typename Record>
  std::optional<Record> payload_as(const Event& event) const {
    static_assert(std::is_trivially_copyable_v<Record>);
    const auto bytes = payload(event);
    if (bytes.size() != sizeof(Record)) return std::nullopt;
    Record record;
    std::memcpy(&record, bytes.data(), sizeof record);
    return record;
  }

  /// The Event::value that refers to `size` bytes at `offset` of the payloads.
  static constexpr std::uint64_t payload_ref(std::size_t offset, std::size_t size) {
    return static_cast<std::uint64_t>(offset) << 32 | static_cast<std::uint32_t>(size);
  }

 private:
  std::span<const Event> events_;
  std::span<const std::byte> payloads_;
};

}  // namespace rtev
