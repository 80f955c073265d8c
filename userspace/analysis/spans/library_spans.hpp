// SPDX-License-Identifier: MIT
// Spans that libraries mark by events of their own, with the names of the spans in the payloads: Eio (0.14 and newer,
// lib_eio/runtime_events) and ocaml-trace (its library trace.runtime_events).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "rtev/event.hpp"
#include "stream/registry.hpp"

namespace rtev {

struct LibrarySpanEvent {
  enum class What : std::uint8_t {
    begin,  ///< of a span: "eio.enter_span", "trace.span.enter"
    end,    ///< of a span: "eio.exit_span", "trace.span.exit"
    exit,   ///< of a fiber: "eio.exit_fiber"
  } what{};
  /// Of Eio. Fibers of a domain take turns, so their spans overlap: an end belongs to the innermost span of its fiber.
  /// Without a fiber it belongs to the innermost span of its name.
  std::optional<std::int64_t> fiber{};
  /// Of the span, as the program made it, in the batch. The ends of Eio's spans have none.
  std::string_view name{};
};

/// A fold over the user events of a stream. Memory is bounded by the number of domains. One thread.
class LibrarySpans {
 public:
  /// Nothing for other events, and for spans of Eio while the current fiber is unknown: until the first "eio.fiber" of
  /// a domain, as the events of spans carry no fiber.
  std::optional<LibrarySpanEvent> add(const Event& event, const Batch& batch, const RingInfo& ring);
  /// Whether events of this name begin or end spans: they are no events of their own.
  static bool marks_span(std::string_view name);
  /// Events of the domain are missing, or it ended: its current fiber is unknown.
  void forget(ProcessIndex process, std::uint16_t domain) { current_.erase({process, domain}); }

  /// The fiber that runs in the domain, if it is one of Eio's that is known.
  std::optional<std::int64_t> current_fiber(ProcessIndex process, std::uint16_t domain) const {
    const auto found = current_.find({process, domain});
    return found == current_.end() ? std::nullopt : std::optional(found->second);
  }

  /// Longer names are cut.
  static constexpr std::size_t max_name_bytes = 256;

 private:
  std::optional<LibrarySpanEvent> add_eio(std::string_view name, const Event& event, const Batch& batch,
                                          ProcessIndex process);

  std::map<std::pair<ProcessIndex, std::uint16_t>, std::int64_t> current_;  ///< fiber, by domain
};

}  // namespace rtev
