// SPDX-License-Identifier: MIT
// Where a thread was, in words.
#pragma once

#include <string>
#include <vector>

#include "analysis/sample_history.hpp"
#include "stream/stacks.hpp"

namespace rtev {

/// By samples of its stack of one kind: the place that it was at for most of them, with their number. Names are
/// escaped. Empty if there are no samples.
std::string place_text(const std::vector<SeenStack>& seen, SampleKind kind, const StackTable& stacks);
/// The same without numbers, and without its callers: for a line of a terminal.
std::string short_place_text(const std::vector<SeenStack>& seen, SampleKind kind, const StackTable& stacks);

}  // namespace rtev
