// SPDX-License-Identifier: MIT
// Finds the earliest of many ordered sources, again and again.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "rtev/event.hpp"

namespace rtev {

/// A tournament of sources by the time of their next event; at equal times the lower source wins. After each event the
/// winner meets the losers of its former matches again: as many as the number of sources has binary digits.
class MergeTree {
 public:
  /// A source.
  struct Player {
    std::uint64_t time;   ///< of the next event: less than the greatest number
    std::uint64_t order;  ///< among equal times: source, then index
    Event* next;          ///< null: no more events, after all others

    std::size_t index() const { return static_cast<std::uint32_t>(order); }
    std::uint32_t source() const { return static_cast<std::uint32_t>(order >> 32); }
    bool is_out() const { return next == nullptr; }
    bool before(const Player& other) const { return time < other.time || (time == other.time && order < other.order); }
    /// The events before this one were taken.
    void go_to(Event* event) {
      next = event;
      time = event->time;
    }
    /// No event is left.
    void leave() {
      next = nullptr;
      time = std::numeric_limits<std::uint64_t>::max();
    }
  };

  void clear() { players_.clear(); }
  /// Adds a source; its index is the number of those before.
  void add(std::uint32_t source, Event* next) {
    players_.push_back({.time = next->time, .order = std::uint64_t{source} << 32 | players_.size(), .next = next});
  }
  /// After the last add(), before anything else.
  void start() {
    leaves_ = std::bit_ceil(std::max<std::size_t>(players_.size(), 1));
    players_.resize(leaves_, no_player);
    losers_.assign(leaves_, no_player);
    // The winners of each round move to the front.
    for (std::size_t matches = leaves_ / 2; matches > 0; matches /= 2) {
      for (std::size_t match = 0; match < matches; ++match) {
        Player winner = players_[2 * match], loser = players_[2 * match + 1];
        if (loser.before(winner)) std::swap(winner, loser);
        losers_[matches + match] = loser;
        players_[match] = winner;
      }
    }
    winner_ = players_.front();
  }

  /// The earliest source.
  const Player& winner() const { return winner_; }
  /// The earliest of the others.
  Player second() const { return best_of(losers_.data(), leaves_, winner_); }
  /// Up to so many times, and while there is a winner: calls take(Player& winner), which takes events of the winner and
  /// lets it go to the next.
  template <typename Take>
  void run(std::size_t times, Take&& take) {
    // What changes is kept in registers.
    Player winner = winner_;
    Player* const losers = losers_.data();
    const std::size_t leaves = leaves_;
    // Events often come in runs of one source. In a run it meets only the best of the others.
    unsigned wins = 0;
    Player best_other = no_player;
    for (; times > 0 && !winner.is_out(); --times) {
      take(winner);
      if (wins > wins_of_run && winner.before(best_other)) continue;
      const std::size_t index = winner.index();
      for (std::size_t match = first_match(leaves, winner); match > 0; match /= 2) {
        Player& loser = losers[match];
        const Player other = loser;
        if (!other.before(winner)) continue;
        // Word by word: a wide load right after such a store would wait until the store has reached the cache.
        loser.time = winner.time;
        loser.order = winner.order;
        loser.next = winner.next;
        winner.time = other.time;
        winner.order = other.order;
        winner.next = other.next;
      }
      wins = winner.index() == index ? wins + 1 : 0;
      if (wins > wins_of_run) best_other = best_of(losers, leaves, winner);
    }
    winner_ = winner;
  }

 private:
  static constexpr Player no_player{.time = std::numeric_limits<std::uint64_t>::max(),
                                    .order = std::numeric_limits<std::uint64_t>::max(),
                                    .next = nullptr};

  /// After more wins of a source in a row than this, it is taken to have a run.
  static constexpr unsigned wins_of_run = 2;

  /// The best of those that lost to the winner.
  static Player best_of(const Player* losers, std::size_t leaves, const Player& winner) {
    Player best = no_player;
    for (std::size_t match = first_match(leaves, winner); match > 0; match /= 2) {
      if (losers[match].before(best)) best = losers[match];
    }
    return best;
  }
  static std::size_t first_match(std::size_t leaves, const Player& player) { return (leaves + player.index()) / 2; }

  std::size_t leaves_ = 1;  ///< a power of two
  Player winner_ = no_player;
  std::vector<Player> losers_;   ///< of match 1, the final, of matches 2 and 3 before it, and so on
  std::vector<Player> players_;  ///< used until start()
};

}  // namespace rtev
