// SPDX-License-Identifier: MIT
// The events that RingReader delivers. All types are plain values without locks: threads may share them for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace rtev {

/// The kind of an Event. Kinds and payloads up to user_custom are those of OCaml's runtime/caml/runtime_events.h.
enum class EventKind : std::uint8_t {
  begin,        ///< a runtime phase begins; id = phase, see phase_name()
  end,          ///< a runtime phase ends; id = phase
  counter,      ///< id = counter, see counter_name() and counter_unit(); value = its value
  alloc,        ///< payload = alloc_bucket_count u64 block counts; only from OCaml's instrumented runtime
  lifecycle,    ///< id = Lifecycle, value = its argument (0 if the message has none)
  user_unit,    ///< id = user event
  user_int,     ///< id = user event, signed_value() = its value
  user_begin,   ///< a span of the program begins; id = user event
  user_end,     ///< a span of the program ends; id = user event
  user_custom,  ///< id = user event, payload = bytes in the program's own encoding
  lost,         ///< payload = Loss, id = LossReason; time = Loss::to_ns (from_ns for those that are not of rings)
  // The rest occurs only inside rtev-bpf, never from RingReader. The payloads are private to it.
  process,       ///< a process started, changed or ended
  sched_switch,  ///< a CPU switched from one thread to another
  wakeup,        ///< a thread became runnable
  sample,        ///< the stack of a thread
  usage,         ///< CPU time of a thread, and its waits for a CPU, in place of most of its switches
};
inline constexpr std::size_t event_kind_count = 16;

/// "begin", "user_int", "switch", ...; "unknown" for other values.
std::string_view to_string(EventKind kind);

/// An event that the program defined itself.
constexpr bool is_user_event(EventKind kind) {
  return kind >= EventKind::user_unit && kind <= EventKind::user_custom;
}

/// True if Event::value refers to bytes in the batch instead of being a number.
constexpr bool has_payload(EventKind kind) {
  return kind == EventKind::alloc || kind == EventKind::user_custom || kind >= EventKind::lost;
}

/// A bit of Event::flags: delivered after events with a later time, or its time was still in the future. Set only by
/// rtev-bpf, which merges many rings.
inline constexpr std::uint8_t flag_late = 1;

/// One event: 24 bytes, trivially copyable. Names of ids: see names.hpp and RingReader::user_event_name().
struct Event {
  std::uint64_t time;    ///< ns of the host's CLOCK_MONOTONIC
  std::uint64_t value;   ///< a number, or the place of the payload in the batch (see Batch::payload)
  std::uint32_t source;  ///< its ordered stream: Source::pack()
  std::uint16_t id;      ///< meaning depends on kind
  EventKind kind;
  std::uint8_t flags;  ///< flag_late or 0

  std::int64_t signed_value() const { return static_cast<std::int64_t>(value); }
};
static_assert(sizeof(Event) == 24 && std::is_trivially_copyable_v<Event>);

/// Most domains, and so rings, of one process: Max_domains_max of OCaml's runtime/caml/config.h.
inline constexpr std::uint32_t max_domains = 4096;

/// An ordered stream of events: the ring of one domain.
struct Source {
  std::uint32_t slot;    ///< which ring file: RingReader::Options::slot
  std::uint16_t domain;  ///< index of the ring in the file, which OCaml's readers call ring id

  static constexpr unsigned domain_bits = 12;
  static_assert(max_domains == 1u << domain_bits);
  static constexpr std::uint32_t max_slot = (1u << (32 - domain_bits)) - 1;
  constexpr std::uint32_t pack() const { return slot << domain_bits | domain; }
  static constexpr Source unpack(std::uint32_t source) {
    return {source >> domain_bits, static_cast<std::uint16_t>(source & ((1u << domain_bits) - 1))};
  }
};

/// Event::id of EventKind::lost: why events are missing.
enum class LossReason : std::uint16_t {
  overwritten,  ///< the program overwrote them before they were read
  corrupt,      ///< the words are no valid messages and were skipped
  // The rest occurs only inside rtev-bpf.
  dropped,             ///< scheduler records that did not fit into a kernel buffer
  overflow,            ///< events of a program without a ring that did not fit into a kernel buffer
  unprobed,            ///< the probes of a program without a ring were off: the number is unknown and Loss::words is 0
  samples,             ///< stack samples on a CPU that did not fit into a kernel buffer, or exceeded a limit
  sleep_samples,       ///< the same of threads that slept
  allocation_samples,  ///< the same of allocations
};

/// "overwritten" and so on; "unknown" for other values.
std::string_view to_string(LossReason reason);

/// Payload of EventKind::lost: a gap in a stream.
struct Loss {
  /// 8-byte words of the ring, 2 or 3 for a typical event; for `dropped` and `samples` the number of records.
  std::uint64_t words;
  /// Time of the last event before the gap, 0 if there is none; for `dropped` and `samples` of the first record.
  std::uint64_t from_ns;
  /// Time of the first event after the gap, or of RingReader::finish().
  std::uint64_t to_ns;
};

/// Payload of EventKind::alloc: the number of blocks allocated, by size in words. Buckets 0 to 9 hold one size each,
/// 10 to 18 ten sizes each (10-19 ... 90-99), 19 holds 100 words and more. Source: runtime/runtime_events.c.
inline constexpr std::size_t alloc_bucket_count = 20;

/// Events and the bytes of their payloads. A view: valid only during the consumer call that receives it.
class Batch {
 public:
  Batch(std::span<const Event> events, std::span<const std::byte> payloads) : events_(events), payloads_(payloads) {}

  std::span<const Event> events() const { return events_; }
  std::span<const std::byte> payloads() const { return payloads_; }

  /// The payload of an event of this batch; empty if its kind has none.
  std::span<const std::byte> payload(const Event& event) const {
    if (!has_payload(event.kind)) return {};
    const std::size_t offset = event.value >> 32, size = static_cast<std::uint32_t>(event.value);
    if (offset > payloads_.size() || size > payloads_.size() - offset) return {};
    return payloads_.subspan(offset, size);
  }

  /// The payload as a Record, e.g. Loss; nothing if its size differs.
  template <typename Record>
  std::optional<Record> payload_as(const Event& event) const {
    static_assert(std::is_trivially_copyable_v<Record>);
    const auto bytes = payload(event);
    if (bytes.size() != sizeof(Record)) return std::nullopt;
    Record record;
    std::memcpy(&record, bytes.data(), sizeof record);
    return record;
  }

  /// The Event::value that refers to `size` bytes at byte `offset` of payloads().
  static constexpr std::uint64_t payload_ref(std::size_t offset, std::size_t size) {
    return static_cast<std::uint64_t>(offset) << 32 | static_cast<std::uint32_t>(size);
  }

 private:
  std::span<const Event> events_;
  std::span<const std::byte> payloads_;
};

}  // namespace rtev
