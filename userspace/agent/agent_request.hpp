// SPDX-License-Identifier: MIT
// What the process that talks to the network asks the tracer for.
#pragma once

#include <cstdint>

namespace rtev::agent {

/// One byte on the channel. The answer is the same byte, with the content in a file in memory.
enum class Request : std::uint8_t {
  health,        ///< an empty answer: the tracer moves events. Else a line for each part that is gone
  metrics,       ///< text of Prometheus
  otlp_metrics,  ///< a request of OTLP
  otlp_spans,    ///< likewise, of long pauses since the last answer; empty if there are none
};
inline constexpr Request last_request = Request::otlp_spans;

/// One byte that the network process sends of its own accord: one that crashed was replaced.
inline constexpr std::uint8_t replaced_notice = 0xC0;

/// One byte that the tracer sends of its own accord.
enum class Order : std::uint8_t {
  begin = 0x80,  ///< to serve: until then another agent does
  finish,        ///< to take no new connections, to answer what was asked, and to end
};

}  // namespace rtev::agent
