// SPDX-License-Identifier: MIT
#include "base/run_parameters.hpp"

#include <algorithm>

#include "base/parse.hpp"

namespace rtev {
namespace {

/// As scanmult() of the runtime: "=20", "=0x14", "=1k"; 1 for other text.
std::optional<std::uint64_t> scaled_number(std::string_view text) {
  if (!text.starts_with('=')) return 1;
  text.remove_prefix(1);
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  const auto number = parse_leading_number<std::uint32_t>(text, is_hex ? 16 : 10);
  if (!number) return std::nullopt;
  const std::size_t unit = text.find_first_not_of(is_hex ? "0123456789abcdefABCDEF" : "0123456789");
  const unsigned shift = unit == std::string_view::npos ? 0
                         : text[unit] == 'k'            ? 10
                         : text[unit] == 'M'            ? 20
                         : text[unit] == 'G'            ? 30
                                                        : 0;
  return std::uint64_t{*number} << shift;
}

}  // namespace

std::optional<std::uint64_t> run_parameter(std::string_view parameters, char letter) {
  std::optional<std::uint64_t> last;
  while (!parameters.empty()) {
    const std::string_view parameter = parameters.substr(0, parameters.find(','));
    parameters.remove_prefix(std::min(parameter.size() + 1, parameters.size()));
    if (!parameter.starts_with(letter)) continue;
    last = scaled_number(parameter.substr(1));
  }
  return last;
}

bool can_make_rings(std::uint64_t words, std::uint64_t domains) {
  constexpr std::uint64_t word_bytes = sizeof(std::uint64_t), header_bytes = 64;
  if (words >> min_ring_bits == 0 || domains == 0) return false;
  const std::uint64_t room = max_ring_file_bytes - header_bytes - ring_names_bytes;
  return words <= room / word_bytes && words * word_bytes + ring_domain_bytes <= room / domains;
}

}  // namespace rtev
