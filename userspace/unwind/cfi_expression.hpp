// SPDX-License-Identifier: MIT
// Evaluates DWARF expressions as unwinding tables have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "unwind/stack_copy.hpp"

namespace rtev {

/// Registers of a frame by DWARF's numbers, those of which the value is known.
struct FrameRegisters {
  std::array<std::uint64_t, 33> values{};
  std::uint64_t known = 0;  ///< bit n: values[n] is

  bool has(unsigned number) const { return number < values.size() && ((known >> number) & 1) != 0; }
  void set(unsigned number, std::uint64_t value) {
    values[number] = value;
    known |= std::uint64_t{1} << number;
  }
  void forget(unsigned number) { known &= ~(std::uint64_t{1} << number); }
};

struct Evaluated {
  enum class State : std::uint8_t {
    done,
    not_copied,  ///< needs memory that was not copied
    refused,     ///< an operation that is not known, or makes no sense
  };
  State state = State::refused;
  std::uint64_t value = 0;
};

/// Evaluates an expression, which may be any bytes; `first` is on its stack at the beginning. Takes time in proportion
/// to its size.
Evaluated evaluate_cfi(std::span<const std::byte> expression, const FrameRegisters& registers, const StackCopy& stack,
                       std::optional<std::uint64_t> first, std::size_t& hint);

}  // namespace rtev
