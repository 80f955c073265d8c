// SPDX-License-Identifier: MIT
// What every run reports about itself at its beginning and its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stream/sink.hpp"

namespace rtev {

/// Host, kernel, version and clocks; `start_ns` is CLOCK_MONOTONIC.
RunHeader make_run_header(const std::vector<std::string>& command_line, std::uint64_t start_ns);

/// What this process has used of cpu and memory so far.
void fill_own_cost(RunSummary& summary);

}  // namespace rtev
