// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "kernel/programs.hpp"
#include "kernel/ringless_programs.hpp"
#include "processes/discovery.hpp"

namespace rtev {

/// What a live session traces, and for how long.
struct LiveOptions {
  DiscoveryOptions discovery;
  kernel::ProgramOptions programs;
  /// Trace programs without a ring, too. Which processes is taken from the options above.
  std::optional<kernel::RinglessOptions> ringless{};
  std::optional<std::chrono::nanoseconds> duration;
  std::vector<std::string> command_line;  ///< for the header
};

}  // namespace rtev
