// SPDX-License-Identifier: MIT
// Measures what domains do in their open phases.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analysis/latency/domain_time.hpp"
#include "analysis/pause_finder.hpp"

namespace rtev {

/// For a PauseListener that measures phases, or pauses. `time` must outlive it.
class PhaseMeters {
 public:
  explicit PhaseMeters(DomainTime& time) : time_(time) {}

  void begin(const DomainLife& domain, std::uint64_t time_ns) {
    open_[domain.key()].push_back({time_ns, time_.start(domain.pid, domain.domain, time_ns)});
  }
  /// What the domain did in the phase; nothing if it was not begun here.
  std::optional<TimeSplit> end(const DomainLife& domain, const PhaseEnd& phase) {
    const auto phases = open_.find(domain.key());
    if (phases == open_.end()) return std::nullopt;
    const auto found =
        std::ranges::find(phases->second.rbegin(), phases->second.rend(), phase.begin_ns, &Open::begin_ns);
    if (found == phases->second.rend()) return std::nullopt;
    TimeSplit split = time_.stop(found->meter, phase.end_ns);
    phases->second.erase(std::prev(found.base()));
    if (phases->second.empty()) open_.erase(phases);
    // What the scheduler did then has been folded into what it did since.
    if (phase.late) split = {.unknown = phase.end_ns - phase.begin_ns};
    return split;
  }

 private:
  struct Open {
    std::uint64_t begin_ns;
    DomainTime::Meter meter;
  };

  DomainTime& time_;
  std::unordered_map<std::uint64_t, std::vector<Open>> open_;  ///< by DomainLife::key(), innermost last
};

}  // namespace rtev
