// SPDX-License-Identifier: MIT
// Starts rtev-bpf so that it misses nothing that happens afterwards.
#pragma once

#include <optional>

#include "live/process.hpp"

namespace rtev::test {

/// Returns when all probes are attached and the first scan is done.
void start_ready(std::optional<Process>& process, Command command);

}  // namespace rtev::test
