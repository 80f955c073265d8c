// SPDX-License-Identifier: MIT
// The longest pauses, each stop-the-world section once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/pause_anatomy.hpp"

namespace rtev {

/// Keeps the longest pauses. Those that took part in a section together are one: the longest of them stands for all,
/// which its sections list. One thread.
class WorstPauses {
 public:
  /// `top`: how many are asked for. Some more are kept, since a longer one may take the place of several.
  explicit WorstPauses(std::size_t top) : top_(top), most_(top + top / 2 + 8) {}

  /// False for a pause that is too short to be kept.
  bool wants(std::uint64_t duration_ns) const {
    return kept_.size() < most_ || duration_ns > kept_.back().duration_ns();
  }
  void add(PauseAnatomy&& pause);
  /// Words of a ring were lost, perhaps in the time of pauses that were added.
  void lose(const DomainLife& domain, const Loss& loss);

  /// Longest first; at most `top`.
  std::vector<const PauseAnatomy*> worst() const;
  /// Pauses that others stand for.
  std::uint64_t represented() const { return represented_; }

 private:
  std::size_t top_;
  std::size_t most_;
  std::vector<PauseAnatomy> kept_;  ///< longest first
  std::uint64_t represented_ = 0;
};

}  // namespace rtev
