// SPDX-License-Identifier: MIT
// Minimum mutator utilization (MMU): how much of any window of time pauses leave to the program, by the window's
// length.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "stream/span_tracker.hpp"

namespace rtev {

/// The share of time that pauses left to the program, in windows of one length: in each position that a window can have
/// in the life of a domain. A share is from 0 to 1, and of one domain, since a request runs on one.
class WindowUtilization {
 public:
  explicit WindowUtilization(std::uint64_t length_ns = 1)
      : length_ns_(length_ns), unit_bits_(static_cast<int>(std::bit_width(length_ns / max_units))) {}

  /// For `ns` the window moved on, and the time in pauses within it went from one value to the other evenly.
  void add(std::uint64_t ns, std::uint64_t paused_from_ns, std::uint64_t paused_to_ns);
  /// The window with most time in pauses, if no worse one is known.
  void note_worst(std::uint64_t begin_ns, std::uint64_t paused_ns, const DomainLife& domain);
  /// Pauses of a domain took so long. `is_long`: it was seen for a window of this length.
  void add_paused(std::uint64_t ns, bool is_long) { (is_long ? paused_long_ns_ : paused_short_ns_) += ns; }
  /// Pauses of a domain that now has such a window took so long before.
  void lengthen(std::uint64_t paused_ns) {
    paused_short_ns_ -= paused_ns;
    paused_long_ns_ += paused_ns;
  }

  std::uint64_t length_ns() const { return length_ns_; }
  /// False if no domain was seen for so long without a gap, or only domains that had less than half of the time in
  /// pauses: busy programs that ended early are not known by an idle one that did not.
  bool is_known() const { return is_known_ && paused_long_ns_ >= paused_short_ns_; }
  /// The least share: the MMU. 1 if nothing is known.
  double least() const { return share(worst_paused_ns_); }
  /// Of all windows, `percent` left at least this share. The exact share is greater by at most a sixtieth of the time
  /// that pauses took of the window.
  double percentile(double percent) const;
  /// The window with the least share: when it began (CLOCK_MONOTONIC), and where.
  std::uint64_t worst_begin_ns() const { return worst_begin_ns_; }
  const DomainLife& worst_domain() const { return worst_domain_; }

 private:
  // The time in pauses is counted in units of 1/8192 of the length, or a little more. Up to 128 units have a part each;
  // beyond that each power of two has 64 parts. Short pauses in long windows have parts of their own.
  static constexpr std::uint64_t max_units = 8192;
  static constexpr std::size_t max_parts = 512;

  /// The part that has a number of units.
  static std::size_t part_of(std::uint64_t units);
  /// How many units there are below its end.
  static std::uint64_t end_of(std::size_t part);
  double share(std::uint64_t paused_ns) const {
    return 1 - static_cast<double>(paused_ns) / static_cast<double>(length_ns_);
  }

  std::uint64_t length_ns_;
  int unit_bits_;  ///< a unit has so many: a division would take most of the time
  bool is_known_ = false;
  std::uint64_t paused_long_ns_ = 0, paused_short_ns_ = 0;  ///< of domains with such a window, and of others
  std::uint64_t worst_paused_ns_ = 0, worst_begin_ns_ = 0;
  DomainLife worst_domain_{};
  std::uint64_t no_pause_ns_ = 0;                        ///< positions without time in pauses
  std::array<std::uint64_t, max_parts> positions_ns_{};  ///< the others, by part
};

/// Pauses of domains in, utilization out. The pauses of a domain come one after the other, in their order. Where pauses
/// may be missing, windows begin anew. Memory is bounded: a domain with too many pauses has no long windows. One
/// thread.
class MutatorUtilization {
 public:
  /// Lengths of windows in ns: what a request may take, up to what an operator looks at.
  static constexpr std::array<std::uint64_t, 9> lengths_ns{1'000'000,     3'000'000,     10'000'000,
                                                           30'000'000,    100'000'000,   300'000'000,
                                                           1'000'000'000, 3'000'000'000, 10'000'000'000};
  static constexpr std::size_t min_pauses_of_domain = 256;          ///< that are kept
  static constexpr std::size_t max_domains = std::size_t{1} << 12;  ///< others are left out

  /// `max_pauses`: that are kept of all domains.
  explicit MutatorUtilization(std::size_t max_pauses = std::size_t{1} << 20);

  /// A domain is there. `is_certain`: it has not been in a pause since before; else it is looked at from its first
  /// pause on.
  void begin_domain(const DomainLife& life, std::uint64_t time_ns, bool is_certain);
  void end_domain(const DomainLife& life, std::uint64_t time_ns);
  /// Only windows_at() needs it: a pause is open.
  void begin_pause(const DomainLife& life, std::uint64_t begin_ns);
  void add_pause(const DomainLife& life, std::uint64_t begin_ns, std::uint64_t end_ns);
  /// From this time on pauses may be missing, until the next one.
  void lose(const DomainLife& life, std::uint64_t from_ns);

  /// By length; up to the ends of domains, or else the last pause.
  const std::vector<WindowUtilization>& windows() const { return windows_; }
  /// The same as if all domains ended now.
  std::vector<WindowUtilization> windows_at(std::uint64_t now_ns) const;

 private:
  struct Pause {
    std::uint64_t begin_ns, end_ns;
  };
  /// A window that moves over the life of a domain.
  struct Window {
    std::uint64_t from_ns = 0;          ///< nothing is known before
    std::uint64_t end_ns = 0;           ///< where its end is
    std::uint64_t paused_ns = 0;        ///< within it
    std::uint64_t first = 0, last = 0;  ///< numbers of the first pauses that end after its begin, and after its end
    bool was_whole = false;             ///< the domain was seen for its length, here or before
  };
  struct Domain {
    DomainLife life{};
    bool is_certain = false;
    std::optional<std::uint64_t> open_ns{};  ///< begin of the open pause
    std::deque<Pause> pauses{};              ///< of the longest window
    std::uint64_t first_number = 0;          ///< of `pauses`
    std::uint64_t known_until_ns = 0;
    std::uint64_t paused_ns = 0;  ///< in all
    std::array<Window, lengths_ns.size()> windows{};
  };

  Domain* find(const DomainLife& life);
  void restart(Domain& domain, std::uint64_t time_ns);
  static void restart(Window& window, std::uint64_t time_ns, std::uint64_t next_pause);
  void advance(Domain& domain, std::uint64_t time_ns);
  void move(const Domain& domain, Window& window, WindowUtilization& result, std::uint64_t time_ns);
  void forget_old(Domain& domain);

  std::size_t max_pauses_;
  std::vector<WindowUtilization> windows_;
  std::map<std::uint64_t, Domain> domains_;
};

}  // namespace rtev
