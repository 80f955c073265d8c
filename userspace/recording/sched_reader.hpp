// SPDX-License-Identifier: MIT
// Makes switches and wakeups of what a recording says of them and of their threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/fxt/recording_layout.hpp"
#include "rtev/error.hpp"
#include "rtev/fxt_reader.hpp"

namespace rtev::record {

/// The other side of SchedWriter. Memory is bounded by what that one tells at a time.
class SchedReader {
 public:
  /// False if the fact is none about threads.
  Result<bool> take(std::string_view what, const fxt::parsed::UserspaceObject& object);

  /// Nothing if the record is not complete, or names threads of which nothing was told.
  std::optional<SchedSwitch> read(const fxt::parsed::ContextSwitch& record);
  std::optional<Wakeup> read(const fxt::parsed::Wakeup& record);

 private:
  const Thread* find(std::uint64_t tid) const;
  const Thread* idle(std::uint32_t number) const;
  const Thread* idle_on(std::uint16_t cpu, std::uint32_t said);

  std::unordered_map<std::uint64_t, Thread> threads_;  ///< by tid
  std::vector<std::optional<Thread>> idle_;            ///< by number
  std::vector<std::uint32_t> idle_of_cpu_;             ///< 1 + number, as of the last switch
};

}  // namespace rtev::record
