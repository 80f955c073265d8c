// SPDX-License-Identifier: MIT
#include "analysis/stats/stats_figures.hpp"

#include <algorithm>

#include "base/saturating_sum.hpp"

namespace rtev {
namespace {

constexpr std::array<std::string_view, heap_counter_count> heap{
    "major_heap_words",           "major_heap_pool_words",       "major_heap_pool_live_words", "major_heap_large_words",
    "major_heap_pool_frag_words", "major_heap_pool_live_blocks", "major_heap_large_blocks",
};
constexpr std::array<std::string_view, trigger_counter_count> triggers{
    "force_minor_alloc_small",
    "force_minor_make_vect",
    "force_minor_set_minor_heap_size",
    "force_minor_memprof",
    "request_major_alloc_shr",
    "request_major_adjust_gc_speed",
    "request_minor_realloc_ref_table",
    "request_minor_realloc_ephe_ref_table",
    "request_minor_realloc_custom_table",
};
constexpr std::array<std::string_view, explicit_phase_count> explicits{
    "explicit_gc_minor",   "explicit_gc_major_slice", "explicit_gc_major", "explicit_gc_full_major",
    "explicit_gc_compact", "explicit_gc_stat",        "explicit_gc_set",
};

constexpr std::uint64_t bytes_of_one_word = 8;

std::uint64_t begins(const std::array<std::uint64_t, Tally::phase_ids>& phases, Family family, std::string_view name) {
  const auto phase = find_phase(family, name);
  const auto id = phase ? static_cast<std::size_t>(*phase) : phases.size();
  return id < phases.size() ? phases[id] : 0;
}

/// Nothing if the family has no such one.
std::optional<std::size_t> counter_id(Family family, std::string_view name) {
  const auto counter = find_counter(family, name);
  if (!counter || static_cast<std::size_t>(*counter) >= Tally::counter_ids) return std::nullopt;
  return static_cast<std::size_t>(*counter);
}

CounterTally counter(const Tally& tally, Family family, std::string_view name) {
  const auto id = counter_id(family, name);
  return id ? tally.counters[*id] : CounterTally{};
}

void add_capped(std::uint64_t& sum, std::uint64_t by) {
  sum = saturating_sum(sum, by);
}

void add_capped(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& by) {
  if (by) sum = saturating_sum(sum.value_or(0), *by);
}

}  // namespace

std::span<const std::string_view> heap_counters() {
  return heap;
}

std::span<const std::string_view> trigger_counters() {
  return triggers;
}

std::span<const std::string_view> explicit_phases() {
  return explicits;
}

std::optional<std::size_t> heap_counter_id(Family family, std::size_t entry) {
  return counter_id(family, heap[entry]);
}

const HeapCounters& HeapCounters::of(Family family) {
  const auto counters_of = [](Family of) {
    return HeapCounters{.words = counter_id(of, "major_heap_words"),
                        .pool = counter_id(of, "major_heap_pool_words"),
                        .pool_live = counter_id(of, "major_heap_pool_live_words"),
                        .large = counter_id(of, "major_heap_large_words")};
  };
  static const HeapCounters before = counters_of(Family::before_5_3), since = counters_of(Family::since_5_3);
  return family == Family::since_5_3 ? since : before;
}

void CounterTally::add(std::uint64_t value) {
  ++count;
  add_capped(sum, value);
  last = value;
  max = std::max(max, value);
}

Tally& Tally::operator+=(const Tally& other) {
  for (std::uint64_t Tally::* const figure :
       {&Tally::wall_ns, &Tally::gc_ns, &Tally::gc_cpu_ns, &Tally::gc_unseen_ns, &Tally::major_cpu_ns, &Tally::cpu_ns,
        &Tally::user_events, &Tally::events, &Tally::losses, &Tally::lost_words, &Tally::unprobed, &Tally::unfinished})
    add_capped(this->*figure, other.*figure);
  for (std::size_t id = 0; id < phases.size(); ++id) add_capped(phases[id], other.phases[id]);
  for (std::size_t id = 0; id < counters.size(); ++id) {
    counters[id].count += other.counters[id].count;
    add_capped(counters[id].sum, other.counters[id].sum);
    counters[id].max = std::max(counters[id].max, other.counters[id].max);
  }
  return *this;
}

Missing& Missing::operator|=(const Missing& other) {
  lost |= other.lost;
  unprobed |= other.unprobed;
  paused |= other.paused;
  unfinished |= other.unfinished;
  before |= other.before;
  merged |= other.merged;
  unread |= other.unread;
  ignored |= other.ignored;
  phases |= other.phases;
  counters |= other.counters;
  user_events |= other.user_events;
  process_times |= other.process_times;
  domain_times |= other.domain_times;
  off |= other.off;
  on |= other.on;
  return *this;
}

std::optional<double> StatsFigures::gc_share() const {
  if (domain_time().value_or(0) == 0 || !of_phases(gc_ns)) return std::nullopt;
  return std::min(static_cast<double>(gc_ns) / static_cast<double>(domain_ns), 1.0);
}

StatsFigures& StatsFigures::operator+=(const StatsFigures& other) {
  using F = StatsFigures;
  lacks_minor_words |= is_uncounted() || other.is_uncounted() || other.lacks_minor_words;
  for (std::uint64_t F::* const figure :
       {&F::wall_ns,           &F::domain_ns,    &F::gc_ns,         &F::gc_cpu_ns,   &F::gc_unseen_ns,
        &F::major_cpu_ns,      &F::sampled_ns,   &F::gc_sampled_ns, &F::stw_led,     &F::stw_followed,
        &F::minor_collections, &F::major_slices, &F::major_cycles,  &F::compactions, &F::minor_words,
        &F::promoted_words,    &F::user_events,  &F::events,        &F::losses,      &F::lost_words})
    add_capped(this->*figure, other.*figure);
  for (std::size_t i = 0; i < explicit_calls.size(); ++i) add_capped(explicit_calls[i], other.explicit_calls[i]);
  for (std::size_t i = 0; i < triggers.size(); ++i) add_capped(triggers[i], other.triggers[i]);
  add_capped(cpu_ns, other.cpu_ns);
  add_capped(major_words, other.major_words);
  fullest_minor_words = std::max(fullest_minor_words, other.fullest_minor_words);
  heap = {};  // greatest values of different times and places do not add up
  missing |= other.missing;
  return *this;
}

StatsFigures figures_of(const Tally& tally, Family family, bool cpu_known) {
  const CounterTally minor_bytes = counter(tally, family, "minor_allocated");
  StatsFigures figures{
      .wall_ns = tally.wall_ns,
      .domain_ns = tally.wall_ns,
      .gc_ns = std::min(tally.gc_ns, tally.wall_ns),
      .cpu_ns = cpu_known ? std::optional{tally.cpu_ns} : std::nullopt,
      .gc_cpu_ns = tally.gc_cpu_ns,
      .gc_unseen_ns = tally.gc_unseen_ns,
      .major_cpu_ns = tally.major_cpu_ns,
      .stw_led = begins(tally.phases, family, "stw_leader"),
      .stw_followed = begins(tally.phases, family, "stw_handler"),
      .major_slices = begins(tally.phases, family, "major_slice"),
      .minor_words = minor_bytes.sum / bytes_of_one_word,
      .promoted_words = counter(tally, family, "minor_promoted").sum / bytes_of_one_word,
      .fullest_minor_words = minor_bytes.max / bytes_of_one_word,
      .user_events = tally.user_events,
      .events = tally.events,
      .losses = tally.losses,
      .lost_words = tally.lost_words,
      .missing = {.lost = tally.losses > tally.unprobed,
                  .unprobed = tally.unprobed > 0,
                  .unfinished = tally.unfinished > 0},
  };
  set_collections(figures, tally.phases, family);
  for (std::size_t i = 0; i < explicits.size(); ++i)
    figures.explicit_calls[i] = begins(tally.phases, family, explicits[i]);
  for (std::size_t i = 0; i < triggers.size(); ++i) figures.triggers[i] = counter(tally, family, triggers[i]).count;
  if (const CounterTally words = counter(tally, family, "major_allocated_words"); words.count > 0)
    figures.major_words = words.sum;
  for (std::size_t i = 0; i < heap.size(); ++i) {
    if (const CounterTally gauge = counter(tally, family, heap[i]); gauge.count > 0)
      figures.heap[i] = {.last = gauge.last, .max = gauge.max};
  }
  return figures;
}

void set_collections(StatsFigures& figures, const std::array<std::uint64_t, Tally::phase_ids>& greatest,
                     Family family) {
  figures.minor_collections = begins(greatest, family, "minor");
  figures.major_cycles = begins(greatest, family, "major_gc_stw");
  figures.compactions = begins(greatest, family, "compaction");
}

}  // namespace rtev
