// SPDX-License-Identifier: MIT
// The longest pauses, those that are shown beside longer ones left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/pauses/pause_details.hpp"

namespace rtev {

/// Keeps the longest pauses. One is listed by itself unless a longer one that is listed shows the section in which it
/// spent the most time, with all domains side by side: then it is reported there. One thread.
class WorstPauses {
 public:
  /// `top`: how many are asked for. Some more are listed, since a longer one may take the place of several.
  explicit WorstPauses(std::size_t top) : top_(top), max_listed_(2 * top + 16) {}

  /// False for a pause that is too short to be kept.
  bool wants(std::uint64_t duration_ns) const {
    return listed_ < max_listed_ || duration_ns > kept_.back().pause.duration_ns();
  }
  void add(PauseDetails&& pause);
  /// Words of a ring were lost, perhaps in the time of pauses that were added.
  void lose(const DomainLife& domain, const Loss& loss);

  /// How many are kept, those that others show included: bounded.
  std::size_t kept() const { return kept_.size(); }
  /// Longest first; at most `top`.
  std::vector<const PauseDetails*> worst() const;
  /// Pauses of `min_ns` and longer in the sections of the worst ones that are not among these.
  std::uint64_t represented(std::uint64_t min_ns) const;

 private:
  static constexpr std::size_t folded_per_listed = 4;

  struct Kept {
    PauseDetails pause;
    std::uint64_t shown_by = 0;  ///< the section that a longer one shows it in; 0: it is listed
    bool stays = false;          ///< one that it shows has been forgotten: it must be listed for good
  };

  void regroup();
  void forget_one();

  std::size_t top_;
  std::size_t max_listed_;
  std::vector<Kept> kept_;  ///< longest first; what is shown by others too, as that may change
  std::size_t listed_ = 0;
};

}  // namespace rtev
