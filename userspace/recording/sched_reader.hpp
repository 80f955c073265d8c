// SPDX-License-Identifier: MIT
// Reads switches and wakeups of a recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rtev/error.hpp"
#include "rtev/fxt_reader.hpp"
#include "stream/recording_layout.hpp"

namespace rtev::record {

/// Reads what SchedWriter wrote. Memory is bounded, as there.
class SchedReader {
 public:
  /// False if the kind of metadata is not about threads.
  Result<bool> take(std::string_view what, const fxt::parsed::UserspaceObject& object);

  /// Whether the bytes of an event that has no record of its own can be its payload.
  static bool is_valid(EventKind kind, std::span<const std::byte> payload);
  /// Nothing if the record is incomplete or its threads are undefined.
  std::optional<SchedSwitch> read(const fxt::parsed::ContextSwitch& record);
  std::optional<Wakeup> read(const fxt::parsed::Wakeup& record);

 private:
  const Thread* find(std::uint64_t tid) const;
  const Thread* idle(std::uint32_t number) const;
  const Thread* idle_on(std::uint16_t cpu, std::uint32_t given);

  std::unordered_map<std::uint64_t, Thread> threads_;  ///< by tid
  std::vector<std::optional<Thread>> idle_;            ///< by number
  std::vector<std::uint32_t> idle_of_cpu_;             ///< 1 + number, as of the last switch
};

}  // namespace rtev::record
