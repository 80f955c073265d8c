// SPDX-License-Identifier: MIT
// What a line of the brief format says of a pause.
#pragma once

#include <string>

#include "analysis/pauses/pause_details.hpp"

namespace rtev {

/// "on CPU 40%, waited 55% for domain 1 to stop  (major: mark 8.20ms, sweep 3.10ms)". Parts below a tenth of the pause
/// are left out; one that is nearly all of it has no share. Names of programs are escaped.
std::string pause_cause(const PauseDetails& pause);

}  // namespace rtev
