// SPDX-License-Identifier: MIT
// What a run lacks, by kind: summaries, reports and pages say the same of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_format.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct Lack {
  enum class Of : std::uint8_t {
    events,
    scheduler,       ///< events that the kernel counted
    scheduler_gaps,  ///< RunSummary::scheduler_gaps
    samples,
    order,  ///< events are there, but not sorted in
  };
  Of of{};
  std::uint64_t count = 0;  ///< above 0
  std::string_view singular, plural;
};

/// The summary with what a sink that follows threads has found.
RunSummary with_scheduler_gaps(RunSummary summary, std::uint64_t gaps);

/// What summary and registry count, events first. Of a recording without its end there may be more.
std::vector<Lack> lacks_of(const RunSummary& summary, const Registry& registry);

/// "3 ring words, 24 stack samples of sleeps".
std::string lacks_text(const std::vector<Lack>& lacks);

/// Events, of which counts and sums are lower bounds then.
bool lacks_events(const std::vector<Lack>& lacks);

/// "3 rings that were not read to their end".
constexpr Counted rings_missed(std::uint64_t count) {
  return {count, "ring that was not read to its end", "rings that were not read to their end"};
}

/// The words of all processes.
Accounting words_of_all(const Registry& registry);

}  // namespace rtev
