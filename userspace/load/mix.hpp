// SPDX-License-Identifier: MIT
// The kinds of events in a load, and their shares.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace rtev::load {

/// A part of a load.
enum class Part : std::uint8_t {
  gc,        ///< garbage collections as OCaml's runtime reports them: nested spans with counters
  counters,  ///< single counters
  alloc,     ///< allocations by size, as written by the instrumented runtime
  user,      ///< user events of every type
  spans,     ///< nested user spans
  custom,    ///< user events with a payload of bytes
};
inline constexpr std::size_t part_count = 6;

/// Weights of the parts: shares of the events, not all of them zero.
class Mix {
 public:
  /// All parts.
  static Mix all();
  /// The parts without user events, as in OCaml 5.0.
  static Mix runtime_only();

  /// "gc", "gc=8,user=1" or "all". The error is the reason.
  static std::expected<Mix, std::string> parse(std::string_view text);

  /// The words for the parts.
  static std::vector<std::string> words();

  std::uint32_t weight(Part part) const { return weights_[static_cast<std::size_t>(part)]; }
  bool has_user_events() const;

  bool operator==(const Mix&) const = default;

 private:
  using Weights = std::array<std::uint32_t, part_count>;
  explicit Mix(const Weights& weights) : weights_(weights) {}

  Weights weights_;
};

}  // namespace rtev::load
