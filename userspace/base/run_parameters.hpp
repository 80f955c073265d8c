// SPDX-License-Identifier: MIT
// OCAMLRUNPARAM, by which users set up OCaml's runtime.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rtev {

/// The number of a parameter such as "e=20" of OCAMLRUNPARAM, of several the last one; nothing if it is not set. As the
/// runtime reads it: also "0x14", "1k", and 1 without a number.
std::optional<std::uint64_t> run_parameter(std::string_view parameters, char letter);

/// What OCaml's runtime has for domains and words of a ring where nothing is set.
inline constexpr std::uint64_t default_ring_domains = 128;
inline constexpr unsigned default_ring_bits = 16;

/// What a ring file has besides rings (runtime/caml/runtime_events.h): names of user events, and heads of each domain.
inline constexpr std::uint64_t ring_names_bytes = std::uint64_t{8192} * 128, ring_domain_bytes = 80;

/// With fewer words than 2^3 the runtime never gets to the end of its first event.
inline constexpr unsigned min_ring_bits = 3;
/// The runtime counts the bytes of a ring file in an int. If they do not fit, it aborts the program, or makes a file
/// that is too short, and writes beyond its end.
inline constexpr std::uint64_t max_ring_file_bytes = INT32_MAX;

/// Whether the runtime can make a ring of so many words for each of so many domains.
bool can_make_rings(std::uint64_t words, std::uint64_t domains);

}  // namespace rtev
