// SPDX-License-Identifier: MIT
// The position of a RingReader in one ring, and the buffers to decode a piece of a ring.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "ring/decode.hpp"
#include "ring/layout.hpp"
#include "rtev/event.hpp"
#include "rtev/ring_reader.hpp"

namespace rtev {

/// Words decoded at a time: they, their events and payloads stay in the second-level cache.
inline constexpr std::size_t decode_words = 2048;
static_assert(decode_words > message::max_words, "a buffer must hold the longest message");

/// Reasons of losses in rings: overwritten and corrupt.
inline constexpr std::size_t loss_reasons = 2;

/// How far one ring was read. Positions count words from the ring's creation.
struct Cursor {
  std::uint64_t position = 0;  ///< next word to read
  std::uint64_t head = 0;      ///< newest head seen
  std::uint64_t tail = 0;      ///< newest tail seen, never before the position
  std::uint64_t ready = 0;     ///< words before it can be read by this poll; see PageCheck
  std::uint64_t added = 0;     ///< words between the last two polls
  /// Time of the ring's first message, 0 if unknown: another time means that the file was created anew.
  std::uint64_t first_time = 0;
  std::uint64_t last_time = 0;      ///< of the last event delivered
  std::uint64_t expected = 0;       ///< tail that the file should reach in the end, 0 if unknown
  std::uint64_t abandoned = 0;      ///< words right before the position that were counted as lost with the file
  std::uint64_t invented = 0;       ///< words before the tail that cannot have been written, and are not counted
  std::optional<bool> is_mapped{};  ///< read through the mapping: else by pread(2), which takes no page tables
  std::array<std::uint64_t, loss_reasons> pending{};  ///< lost words by LossReason, not delivered as an event yet
  Accounting totals;  ///< `written` and `unread` are completed by RingReader::accounting()
};

/// What is decoded at a time. There is one for each thread, not for each reader: a host may have hundreds of rings.
struct DecodeBuffer {
  static constexpr std::size_t loss_bytes = loss_reasons * sizeof(Loss);

  std::array<std::uint64_t, decode_words> words;  ///< a copy, if the program can overwrite the original soon
  std::array<Event, loss_reasons + decode_words / 2> events;
  std::array<std::byte, loss_bytes + decode_words * sizeof(std::uint64_t)> payloads;

  static DecodeBuffer& of_this_thread() {
    thread_local const auto buffer = std::make_unique<DecodeBuffer>();
    return *buffer;
  }

  /// The first decoded event. The space before it is for losses, which precede the event that ends the gap.
  Event* first_event() { return events.data() + loss_reasons; }

  DecodeResult decode(std::span<const std::uint64_t> from, std::uint32_t source, std::int64_t clock_offset_ns) {
    return decode_messages(from, source, clock_offset_ns, first_event(), payloads.data(), loss_bytes);
  }

  Batch batch(std::size_t losses, const DecodeResult& decoded) {
    return {{first_event() - losses, losses + decoded.events},
            std::span(payloads).first(loss_bytes + decoded.payload_bytes)};
  }

  /// Writes an event for each pending loss right before the first event; returns how many.
  std::size_t put_losses(Cursor& cursor, std::uint32_t source, std::uint64_t now) {
    std::size_t count = 0;
    // A hostile program may invent times; the interval must not be reversed by them.
    now = std::max(now, cursor.last_time);
    for (std::size_t reason = 0; reason < loss_reasons; ++reason) {
      if (cursor.pending[reason] == 0) continue;
      const Loss loss{.words = std::exchange(cursor.pending[reason], 0), .from_ns = cursor.last_time, .to_ns = now};
      const std::size_t offset = reason * sizeof loss;
      std::memcpy(payloads.data() + offset, &loss, sizeof loss);
      ++count;
      *(first_event() - count) = {.time = now,
                                  .value = Batch::payload_ref(offset, sizeof loss),
                                  .source = source,
                                  .id = static_cast<std::uint16_t>(reason),
                                  .kind = EventKind::lost,
                                  .flags = 0};
    }
    return count;
  }
};

}  // namespace rtev
