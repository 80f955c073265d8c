// SPDX-License-Identifier: MIT
// What a line of the brief format says of a pause.
#pragma once

#include <string>

#include "analysis/pauses/pause_details.hpp"
#include "stream/stacks.hpp"

namespace rtev {

/// "waited 55% for domain 1, which was in Upload.hash upload.ml:4, on CPU 40%  (major: mark 8.20ms)". Parts
/// below a tenth of the pause are left out; one that is nearly all of it has no share. The place is known of sampled
/// stacks only. All names are escaped.
std::string pause_cause(const PauseDetails& pause, const StackTable& stacks);

}  // namespace rtev
