// SPDX-License-Identifier: MIT
// Decodes words of a ring to events: the hot path. A pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rtev/event.hpp"

namespace rtev {

struct DecodeResult {
  std::size_t consumed = 0;       ///< words of complete messages, from the beginning
  std::size_t events = 0;         ///< written to `events`
  std::size_t payload_bytes = 0;  ///< written to `payloads`
  bool corrupt = false;           ///< the words after the consumed ones are no valid message
  bool has_user_events = false;   ///< perhaps, if the words changed meanwhile
};

/// Decodes complete messages from the front of `words`; stops before one that continues after them. `events` must have
/// room for words.size() / 2 events. Payloads are written from offset `payload_begin` of `payloads` on, which must have
/// room for words.size_bytes(). The words may change meanwhile: the events are then wrong, but still well-formed.
DecodeResult decode_messages(std::span<const std::uint64_t> words, std::uint32_t source, std::int64_t clock_offset_ns,
                             Event* events, std::byte* payloads, std::size_t payload_begin);

}  // namespace rtev
