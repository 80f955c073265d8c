// SPDX-License-Identifier: MIT
// What a run lacks, why, and what the user can do about it.
#pragma once

#include "base/text_buffer.hpp"
#include "formats/text/run_summary.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Lines for people. `words`: of all processes. False, and nothing added, if nothing is lacking.
bool add_warnings(TextBuffer& out, const RunSummary& summary, const Registry& registry, const Accounting& words,
                  const OutputFacts& output);

}  // namespace rtev
