// SPDX-License-Identifier: MIT
// Which kinds of events a load consists of, and in what shares.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace rtev::load {

/// What a load is put together from.
enum class Part : std::uint8_t {
  gc,        ///< collections as OCaml's runtime tells of them: nested spans with their counters
  counters,  ///< counters alone
  alloc,     ///< allocations by size, as from the instrumented runtime
  user,      ///< user events of every type
  spans,     ///< user spans, one in the other
  custom,    ///< user events that carry bytes
};
inline constexpr std::size_t part_count = 6;

/// Weights of the parts: shares of the events, not all of them zero.
class Mix {
 public:
  /// Everything a program can write.
  static Mix all();
  /// What a program of OCaml 5.0 can write: no user events.
  static Mix runtime_only();

  /// "gc", "gc=8,user=1" or "all". The error says what is wrong.
  static std::expected<Mix, std::string> parse(std::string_view text);

  std::uint32_t weight(Part part) const { return weights_[static_cast<std::size_t>(part)]; }
  bool has_user_events() const;

  bool operator==(const Mix&) const = default;

 private:
  using Weights = std::array<std::uint32_t, part_count>;
  explicit Mix(const Weights& weights) : weights_(weights) {}

  Weights weights_;
};

}  // namespace rtev::load
