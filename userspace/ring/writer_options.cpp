// SPDX-License-Identifier: MIT
// RingWriter::Options from what the environment asks OCaml programs for.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "rtev/ring_writer.hpp"

namespace rtev {
namespace {

/// The number of `letter=` in a list such as "v=0x400,e=20"; the last one counts, as it does for OCaml.
std::uint64_t parameter(std::string_view list, char letter, std::uint64_t otherwise) {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
    if (entry.size() < 3 || entry[0] != letter || entry[1] != '=') continue;
    std::string_view digits = entry.substr(2);
    const int base = digits.starts_with("0x") ? 16 : 10;
    if (base == 16) digits.remove_prefix(2);
    std::uint64_t number = 0;
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
    const std::string_view unit(rest, digits.data() + digits.size());
    const unsigned shift = unit == "k" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
    if (error == std::errc::invalid_argument || (shift == 0 && !unit.empty())) continue;
    if (error == std::errc::result_out_of_range) number = UINT64_MAX;
    otherwise = number > UINT64_MAX >> shift ? UINT64_MAX : number << shift;
  }
  return otherwise;
}

}  // namespace

RingWriter::Options RingWriter::Options::from_environment() {
  Options options;
  options.start = ::secure_getenv("OCAML_RUNTIME_EVENTS_START") != nullptr;
  options.preserve = ::secure_getenv("OCAML_RUNTIME_EVENTS_PRESERVE") != nullptr;
  if (const char* const directory = ::secure_getenv("OCAML_RUNTIME_EVENTS_DIR")) options.directory = directory;
  const char* list = ::secure_getenv("OCAMLRUNPARAM");
  if (list == nullptr) list = ::secure_getenv("CAMLRUNPARAM");
  if (list == nullptr) return options;
  // What does not fit is out of range anyway, and create() says so. How many domains there are (d=) the program knows.
  options.log2_words =
      static_cast<unsigned>(std::min<std::uint64_t>(parameter(list, 'e', options.log2_words), UINT32_MAX));
  return options;
}

}  // namespace rtev
