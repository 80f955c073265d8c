// SPDX-License-Identifier: MIT
// What a run lacks, by kind: summaries, reports and pages say the same of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_format.hpp"
#include "stream/records.hpp"
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

/// What the losses of rings add up to.
struct LostWords {
  std::uint64_t words = 0;
  std::uint64_t gaps = 0;  ///< while probes were off: how many words each of them is, is unknown

  void add(const Loss& loss) {
    words += loss.words;
    gaps += loss.words == 0 ? 1 : 0;
  }
  bool any() const { return words > 0 || gaps > 0; }
  std::optional<std::uint64_t> known(bool is_unknown) const { return known_count(words, is_unknown || gaps > 0); }
  /// "3 ring words were lost and tracing by probes paused 2 times".
  std::string text() const;
};

/// "3 rings that were not read to their end".
constexpr Counted rings_missed(std::uint64_t count) {
  return {count, "ring that was not read to its end", "rings that were not read to their end"};
}

/// The words of all processes.
Accounting words_of_all(const Registry& registry);

}  // namespace rtev
