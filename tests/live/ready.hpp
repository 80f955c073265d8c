// SPDX-License-Identifier: MIT
// Starts rtev-bpf so that nothing which happens afterwards is missed.
#pragma once

#include <optional>

#include "live/process.hpp"

namespace rtev::test {

/// Returns once everything is attached and the first scan is done.
void start_ready(std::optional<Process>& process, Command command);

}  // namespace rtev::test
