// SPDX-License-Identifier: MIT
// The summary of a run in text.
#pragma once

#include <cstdint>
#include <string>

#include "stream/sink.hpp"

namespace rtev {

/// How the stream was written: hints must not tell to do what is done already.
struct OutputFacts {
  bool is_file = false;
  bool is_report = false;        ///< of the stream only a report is written
  std::uint64_t blocked_ns = 0;  ///< the reader of a pipe or terminal took nothing for so long
};

/// One line if nothing is lacking. Else, and if `full`, several ones, without colours: processes, events, what was lost
/// and what to do about it, own cost. What traced programs call themselves is escaped.
std::string summary_text(const RunSummary& summary, const Registry& registry, bool full,
                         const OutputFacts& output = {});

}  // namespace rtev
