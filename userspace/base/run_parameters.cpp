// SPDX-License-Identifier: MIT
#include "base/run_parameters.hpp"

#include <algorithm>

#include "base/parse.hpp"

namespace rtev {

std::optional<std::uint64_t> run_parameter(std::string_view parameters, char letter) {
  std::optional<std::uint64_t> last;
  while (!parameters.empty()) {
    const std::string_view parameter = parameters.substr(0, parameters.find(','));
    parameters.remove_prefix(std::min(parameter.size() + 1, parameters.size()));
    if (parameter.size() < 3 || parameter[0] != letter || parameter[1] != '=') continue;
    last = parse_leading_number<std::uint64_t>(parameter.substr(2));
  }
  return last;
}

}  // namespace rtev
