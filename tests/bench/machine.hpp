// SPDX-License-Identifier: MIT
// Where and with what a benchmark ran: figures mean nothing without it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rtev::bench {

/// Facts by name, in the order in which they are to be read.
using Machine = std::vector<std::pair<std::string, std::string>>;

Machine this_machine();

}  // namespace rtev::bench
