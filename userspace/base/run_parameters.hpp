// SPDX-License-Identifier: MIT
// OCAMLRUNPARAM, by which users set up OCaml's runtime.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rtev {

/// The number of a parameter such as "e=20" of OCAMLRUNPARAM, of several the last one; nothing if it is not set.
std::optional<std::uint64_t> run_parameter(std::string_view parameters, char letter);

}  // namespace rtev
