// SPDX-License-Identifier: MIT
// Spans of Eio's fibers (Eio 0.14 and newer, lib_eio/runtime_events). Fibers of a domain take turns, so their spans
// overlap. The events of a span carry no fiber: they belong to the current fiber of the domain, which "eio.fiber"
// names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "rtev/event.hpp"
#include "stream/registry.hpp"

namespace rtev {

struct FiberEvent {
  enum class What : std::uint8_t {
    begin,  ///< of a span: "eio.enter_span"
    end,    ///< of the innermost open span of the fiber: "eio.exit_span"
    exit,   ///< of the fiber: "eio.exit_fiber"
  } what{};
  std::int64_t fiber = 0;
  std::string name{};  ///< of the span that begins, as the program made it
};

/// A fold over the user events of a stream. Memory is bounded by the number of domains. One thread.
class EioSpans {
 public:
  /// Nothing for other events, and where the current fiber is unknown: until the first "eio.fiber" of a domain.
  std::optional<FiberEvent> add(const Event& event, const Batch& batch, const RingInfo& ring);
  /// Events of the domain are missing, or it ended: its current fiber is unknown.
  void forget(ProcessIndex process, std::uint16_t domain) { current_.erase({process, domain}); }

  /// Longer names are cut.
  static constexpr std::size_t max_name_bytes = 256;

 private:
  std::map<std::pair<ProcessIndex, std::uint16_t>, std::int64_t> current_;  ///< fiber, by domain
};

}  // namespace rtev
