// SPDX-License-Identifier: MIT
// A stop-the-world section as a table for people: its domains side by side.
#pragma once

#include <cstdint>

#include "analysis/pauses/pause_details.hpp"
#include "base/text_buffer.hpp"

namespace rtev {

/// The section that a pause took part in, in order of arrival; of very many domains those that arrived last. Times are
/// seconds since `start_ns`.
void add_section(TextBuffer& out, const PauseDetails& pause, const PauseSection& part, std::uint64_t start_ns);

}  // namespace rtev
