// SPDX-License-Identifier: MIT
// How often processes that work for this one ended or hung, and others took their place.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/enum_names.hpp"

namespace rtev {

enum class Part : std::uint8_t {
  helper,   ///< a worker of the helper process, which looks at programs
  closer,   ///< closes files and links
  network,  ///< serves and pushes metrics
  enabler,  ///< switches events on
};
inline constexpr std::size_t part_count = 4;

inline std::string_view to_string(Part part) {
  static constexpr std::string_view names[]{"helper", "closer", "network", "enabler"};
  return name_at(names, part);
}

namespace detail {
inline std::array<std::atomic<std::uint64_t>, part_count> restarts{};
}

/// Of this process. Thread-safe, as is the following.
inline void count_restart(Part part) {
  detail::restarts.at(static_cast<std::size_t>(part)).fetch_add(1, std::memory_order_relaxed);
}
inline std::uint64_t restarts_of(Part part) {
  return detail::restarts.at(static_cast<std::size_t>(part)).load(std::memory_order_relaxed);
}

}  // namespace rtev
