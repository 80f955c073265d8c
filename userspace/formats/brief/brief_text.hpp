// SPDX-License-Identifier: MIT
// What a line of the brief format says of a pause.
#pragma once

#include <string>

#include "analysis/pauses/pause_details.hpp"

namespace rtev {

/// "12.1ms major (mark 8.20ms, sweep 3.10ms)  on CPU 40%, waited 55% for domain 1 to stop". Parts below a tenth of the
/// pause are left out. Names of programs are escaped.
std::string pause_line(const PauseDetails& pause);

}  // namespace rtev
