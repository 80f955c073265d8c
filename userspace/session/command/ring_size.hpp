// SPDX-License-Identifier: MIT
// How large the rings of a command are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rtev {

/// What limits the size of a ring file. Bytes.
struct RingLimits {
  std::uint64_t free = 0;                ///< where the file will be
  std::uint64_t file = UINT64_MAX;       ///< RLIMIT_FSIZE
  std::uint64_t addresses = UINT64_MAX;  ///< RLIMIT_AS
};

/// As this process has them. `directory`: of the ring files.
RingLimits ring_limits(const std::string& directory);

/// OCAMLRUNPARAM for a command, and what is to be said of it.
struct RingParameters {
  std::string parameters;
  std::string note{};  ///< if they are not what the caller chose; empty: nothing
};

/// Larger rings than OCaml's own of 2^16 words (512 KiB) for each domain: 2^20 words, or as many as the limits allow.
/// The file is sparse: a domain takes what it writes. Nothing if `parameters` sets the size, or there is no room.
/// Smaller ones where the runtime could not make those that `parameters` asks for: it aborts the program, or leaves it
/// without.
std::optional<RingParameters> fitting_rings(std::string_view parameters, const RingLimits& limits);

}  // namespace rtev
