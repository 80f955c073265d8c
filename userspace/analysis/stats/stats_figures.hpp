// SPDX-License-Identifier: MIT
// What `stats` counts: tallies by the ids of the ring while the stream goes by, and the figures they stand for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "rtev/names.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Values of one counter.
struct CounterTally {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;  ///< stays at its greatest value should it not fit
  std::uint64_t last = 0;
  std::uint64_t max = 0;

  void add(std::uint64_t value);
};

/// What a domain, or several together, did. Sums stay at their greatest value should they not fit: what is in a ring is
/// whatever its program wrote.
struct Tally {
  static constexpr std::size_t phase_ids = 64, counter_ids = 32;  ///< more than any version of OCaml has

  std::uint64_t wall_ns = 0;
  std::uint64_t gc_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t gc_cpu_ns = 0;                    ///< of gc_ns, on a cpu
  std::uint64_t gc_unseen_ns = 0;                 ///< of gc_ns: whether it was on a cpu is unknown
  std::uint64_t major_cpu_ns = 0;                 ///< of gc_cpu_ns, in pauses for the major collector
  std::array<std::uint64_t, phase_ids> phases{};  ///< begins, by phase
  std::array<CounterTally, counter_ids> counters{};
  std::uint64_t user_events = 0;
  std::uint64_t events = 0;
  std::uint64_t losses = 0;
  std::uint64_t lost_words = 0;
  std::uint64_t unprobed = 0;    ///< of the losses, gaps of probes: what was lost in them is unknown
  std::uint64_t unfinished = 0;  ///< pauses of unknown length

  /// Counters' `last` becomes meaningless, all else is what both did.
  Tally& operator+=(const Tally& other);
};

/// Why figures are less than the truth.
struct Missing {
  bool lost = false;        ///< words of a ring
  bool unprobed = false;    ///< of a program without a ring: its probes were off for a while
  bool paused = false;      ///< the program paused its events for a while
  bool unfinished = false;  ///< pauses whose end was not seen
  bool before = false;      ///< a ring overwrote its past before it was read
  bool merged = false;      ///< domains that run were merged, and collections are no longer counted by domain
  bool unread = false;      ///< rings, or a part of one, were never read
  bool ignored = false;     ///< phases of more domains than can be followed at once
  /// --events left some of them out, or all: then what they count is unknown.
  bool phases = false, counters = false, user_events = false;
  /// It left out what says when processes, or domains, began and ended.
  bool process_times = false, domain_times = false;
  /// Events of a process were not read, and of another one they were. Of domains neither is said.
  bool off = false, on = false;

  /// No events were read: all that they count is unknown.
  bool all_off() const { return off && !on; }
  bool left_out() const { return phases || counters || user_events; }
  /// Why all of them are less.
  bool any() const { return lost || unprobed || paused || unfinished || before || merged || unread || ignored; }
  Missing& operator|=(const Missing& other);
};

/// Names of the counters and phases that make up lists in the reports.
std::span<const std::string_view> heap_counters();
std::span<const std::string_view> trigger_counters();
std::span<const std::string_view> explicit_phases();
inline constexpr std::size_t heap_counter_count = 7, trigger_counter_count = 9, explicit_phase_count = 7;

/// The counter behind an entry of heap_counters(); nothing if the family has no such one.
std::optional<std::size_t> heap_counter_id(Family family, std::size_t entry);

/// The counters that tell how large the heap is, by id. Slices report `words` (since OCaml 5.3); ends of cycles report
/// the others, `large` as the last one.
struct HeapCounters {
  std::optional<std::size_t> words{}, pool{}, pool_live{}, large{};

  static const HeapCounters& of(Family family);
};

struct Gauge {
  std::uint64_t last = 0;
  std::uint64_t max = 0;
};

/// Figures of a domain, of a process, of all: never negative, GC time never more than the time of the domains.
struct StatsFigures {
  std::uint64_t wall_ns = 0;              ///< how long it was seen
  std::uint64_t domain_ns = 0;            ///< of a domain wall_ns; else the sum over the domains
  std::uint64_t gc_ns = 0;                ///< in pauses, all domains
  std::optional<std::uint64_t> cpu_ns{};  ///< of all its threads; nothing if unknown
  std::uint64_t gc_cpu_ns = 0;            ///< of gc_ns, on a cpu: as far as that is known
  std::uint64_t gc_unseen_ns = 0;         ///< of gc_ns: whether it was on a cpu is unknown
  std::uint64_t major_cpu_ns = 0;         ///< of gc_cpu_ns, in pauses for slices of the major collector
  std::uint64_t sampled_ns = 0;           ///< CPU time that stacks of a process stand for
  std::uint64_t gc_sampled_ns = 0;        ///< of it, in the GC: in a phase, or below an entry of the runtime to it
  std::uint64_t stw_led = 0;              ///< stop-the-world sections of which a domain was the leader
  std::uint64_t stw_followed = 0;         ///< in which it took part for another domain
  std::uint64_t minor_collections = 0;
  std::uint64_t major_slices = 0;
  std::uint64_t major_cycles = 0;
  std::uint64_t compactions = 0;
  std::array<std::uint64_t, explicit_phase_count> explicit_calls{};  ///< as explicit_phases()
  std::array<std::uint64_t, trigger_counter_count> triggers{};       ///< as trigger_counters()
  std::uint64_t minor_words = 0;                                     ///< allocated in minor heaps
  bool lacks_minor_words = false;    ///< of a sum: some of its domains never collected, so of them nothing is known
  std::uint64_t promoted_words = 0;  ///< of them moved to the major heap
  std::uint64_t fullest_minor_words = 0;  ///< the most that one minor collection found in the minor heap of a domain
  std::optional<std::uint64_t> major_words{};                   ///< that slices found new; since OCaml 5.3
  std::array<std::optional<Gauge>, heap_counter_count> heap{};  ///< as heap_counters()
  std::uint64_t user_events = 0;                                ///< a span counts once
  std::uint64_t events = 0;
  std::uint64_t losses = 0;
  std::uint64_t lost_words = 0;
  Missing missing{};  ///< if any(), all but times of wall and cpu are lower bounds; major_words is one anyway

  /// Figures of phases and of counters; nothing where --events left them out.
  std::optional<std::uint64_t> of_phases(std::uint64_t figure) const {
    return known_count(figure, missing.phases || missing.all_off());
  }
  std::optional<std::uint64_t> of_counters(std::uint64_t figure) const {
    return known_count(figure, missing.counters || missing.all_off());
  }
  std::optional<std::uint64_t> known_user_events() const {
    return known_count(user_events, missing.user_events || missing.all_off());
  }
  std::optional<std::uint64_t> known_events() const { return known_count(events, missing.all_off()); }
  /// Losses; of words known_lost_words().
  std::optional<std::uint64_t> of_losses(std::uint64_t figure, bool truncated) const {
    return known_count(figure, truncated || missing.all_off());
  }
  std::optional<std::uint64_t> known_lost_words(bool truncated) const {
    return of_losses(lost_words, truncated || missing.unprobed);
  }
  /// Nothing if the thread of no pause was known.
  std::optional<std::uint64_t> known_gc_cpu() const {
    return cpu_ns && (gc_cpu_ns > 0 || gc_ns == 0) ? of_phases(gc_cpu_ns) : std::nullopt;
  }
  /// GC's share of the CPU time by stacks: what it does before the first phase, and between two, is in it.
  std::optional<double> gc_sample_share() const {
    if (sampled_ns == 0 || (gc_sampled_ns == 0 && !of_phases(0))) return std::nullopt;
    return static_cast<double>(gc_sampled_ns) / static_cast<double>(sampled_ns);
  }
  /// A runtime reports what it allocated when it collects: without that phase it was not recorded.
  std::optional<std::uint64_t> known_minor_collections() const {
    return minor_collections == 0 && minor_words > 0 ? std::nullopt : of_phases(minor_collections);
  }
  /// Collections find what was allocated before them: without one nothing says how much that was.
  std::optional<std::uint64_t> known_minor_words() const {
    const bool is_unknown = is_uncounted() || (lacks_minor_words && minor_words == 0);
    return is_unknown ? std::nullopt : of_counters(minor_words);
  }
  bool is_uncounted() const { return minor_collections == 0 && minor_words == 0 && domain_ns > 0; }
  /// Times; nothing where --events left out what says when processes or domains began.
  std::optional<std::uint64_t> wall() const { return missing.process_times ? std::nullopt : std::optional{wall_ns}; }
  std::optional<std::uint64_t> domain_time() const {
    return missing.domain_times || missing.all_off() ? std::nullopt : std::optional{domain_ns};
  }
  /// They are lower bounds.
  bool phases_bound() const { return missing.any() || missing.phases; }
  bool gc_cpu_bound() const { return phases_bound() || gc_unseen_ns > gc_ns / 100; }
  bool counters_bound() const { return missing.any() || missing.counters; }
  bool minor_words_bound() const { return counters_bound() || lacks_minor_words; }
  /// GC time in the time of the domains, 0 to 1; nothing where there was no such time, or it is unknown.
  std::optional<double> gc_share() const;
  /// A slice reports the allocations before it: those after the last slice of a domain are in no event.
  bool major_words_lower_bound() const { return major_words.has_value(); }
  StatsFigures& operator+=(const StatsFigures& other);
};

/// What a tally means in a family. `cpu_known`: the scheduler was traced.
StatsFigures figures_of(const Tally& tally, Family family, bool cpu_known);

/// What phases in which each domain takes part once say about the whole process: the greatest count of its domains.
void set_collections(StatsFigures& figures, const std::array<std::uint64_t, Tally::phase_ids>& greatest, Family family);

}  // namespace rtev
