// SPDX-License-Identifier: MIT
// Describes the machine and software of a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rtev::bench {

/// Name and value, in the order to print.
using Machine = std::vector<std::pair<std::string, std::string>>;

Machine this_machine();

}  // namespace rtev::bench
