// SPDX-License-Identifier: MIT
// The summary of a run in text.
#pragma once

#include <string>

#include "stream/sink.hpp"

namespace rtev {

/// One line if nothing is lacking. Else, and if `full`, several ones, without colours: processes, events, what was lost
/// and what to do about it, own cost. What traced programs call themselves is escaped.
std::string summary_text(const RunSummary& summary, const Registry& registry, bool full);

}  // namespace rtev
