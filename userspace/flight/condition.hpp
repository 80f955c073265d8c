// SPDX-License-Identifier: MIT
// What has to happen for a dump: `--on 'pause>50ms'`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rtev::flight {

struct Condition {
  enum class What : std::uint8_t {
    pause,        ///< longer than `limit` ns
    span,         ///< a user span whose name matches, longer than `limit` ns
    sched_delay,  ///< a thread could run and had no CPU for more than `limit` ns
    heap,         ///< of a process, more than `limit` bytes
    gc_share,     ///< of pauses in the time of a process's domains: more than `limit` in `over_ns`
    lost,         ///< words of a ring, or scheduler records
  };
  What what{};
  std::string text{};     ///< as the user wrote it
  std::string pattern{};  ///< of names of spans, with wildcards
  double limit = 0;
  std::uint64_t over_ns = 0;
};

/// "pause", "sched-delay", ...: part of names of files.
std::string_view to_string(Condition::What what);

/// "pause>50ms", "span:NAME>100ms", "sched-delay>20ms", "heap>2G", "gc-share>30%/10s", "lost". A time needs a unit.
/// Nothing for other text.
std::optional<Condition> parse_condition(std::string_view text);

}  // namespace rtev::flight
