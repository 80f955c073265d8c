// SPDX-License-Identifier: MIT
#include "load/plan.hpp"

#include <algorithm>
#include <array>
#include <random>

namespace rtev::load {
namespace {

/// Counters at the beginning of a major slice; versions before 5.3 have none of them.
constexpr std::array<std::string_view, 9> slice_counters{
    "major_heap_words",   "major_allocated_words", "major_allocated_work", "major_dependent_work", "major_extra_work",
    "major_work_counter", "major_alloc_counter",   "major_slice_target",   "major_slice_budget"};

/// Counters that the runtime also writes outside collections.
constexpr std::array<std::string_view, 4> single_counters{"force_minor_alloc_small", "request_major_alloc_shr",
                                                          "request_minor_realloc_ref_table", "minor_promoted"};

constexpr std::uint64_t word_bytes = 8;
constexpr std::uint64_t minor_heap_words = 262'144;  // OCaml's default
constexpr std::uint64_t max_heap_words = 10'000'000;

/// Long enough to look irregular, short enough for the first-level cache.
constexpr std::size_t min_steps = 2048;

/// The part that is furthest behind its share.
Part next_part(const Mix& mix, const std::array<std::uint64_t, part_count>& events) {
  Part best{};
  bool found = false;
  for (std::size_t i = 0; i < part_count; ++i) {
    const Part part{static_cast<std::uint8_t>(i)};
    if (mix.weight(part) == 0) continue;
    const bool is_behind =
        !found || events[i] * mix.weight(best) < events[static_cast<std::size_t>(best)] * mix.weight(part);
    if (is_behind) best = part;
    found = true;
  }
  return best;
}

}  // namespace

/// Appends blocks to a plan. All domains of a process get blocks of the same shape with different values.
class Composer {
 public:
  Composer(Plan& plan, const PlanOptions& options)
      : plan_(plan),
        options_(options),
        shape_(options.seed),
        values_(options.seed * 0x9e3779b97f4a7c15 + options.domain) {}  // odd: different seeds give different values

  void add(Part part) {
    switch (part) {
      case Part::gc:
        return collection();
      case Part::counters:
        return counter();
      case Part::alloc:
        return alloc();
      case Part::user:
        return request();
      case Part::spans:
        return queries();
      case Part::custom:
        return message();
    }
  }

 private:
  void collection() {
    if (shape(3) != 0) return minor_collection();
    major_slice();
    constexpr std::uint64_t slices_per_phase = 4;
    if (++slices_ % slices_per_phase == 0) phase_change();
  }

  bool leads_next_section() { return sections_++ % options_.domains == options_.domain; }

  /// A stop-the-world section, in which all domains work. The other domains have two events around it. The leader has
  /// two more events in it or after it, so that all plans have the same length.
  template <typename Work>
  void stop_the_world(bool is_leader, Work work) {
    const std::string_view role = is_leader ? "stw_leader" : "stw_handler";
    if (!is_leader) begin("interrupt_remote");
    span(role, [&] {
      span("stw_api_barrier");
      work();
    });
    if (!is_leader) end("interrupt_remote");
  }

  void minor_collection() {
    const bool is_leader = leads_next_section();
    stop_the_world(is_leader, [&] { minor_heap(is_leader); });
  }

  void minor_heap(bool is_leader) {
    span("minor", [&] {
      if (is_leader) span("minor_global_roots");
      span("minor_remembered_set", [&] {
        span("minor_finalizers_oldify");
        span("minor_memprof_roots");
        span("minor_remembered_set_promote");
      });
      span("minor_local_roots", [&] { span("minor_local_roots_promote"); });
      span("minor_memprof_clean");
      const std::uint64_t allocated = minor_heap_words - value(minor_heap_words / 8);
      const std::uint64_t promoted = allocated / 100 * (1 + value(20));
      count("minor_promoted", promoted * word_bytes);
      count("minor_allocated", allocated * word_bytes);
      heap_words_ = std::min(heap_words_ + promoted, max_heap_words);
    });
    span("minor_leave_barrier");
    span("minor_finalizers_admin");
    span("minor_clear");
  }

  void major_slice() {
    const bool sweeps = shape(2) == 0;
    span("major", [&] {
      for (const std::string_view name : slice_counters)
        count(name, name == "major_heap_words" ? heap_words_ : value(heap_words_ + 1));
      span("major_slice", [&] {
        if (sweeps) span("major_sweep");
        span("major_mark");
      });
    });
    if (sweeps) heap_words_ -= value(heap_words_ / 4 + 1);
  }

  void phase_change() {
    const bool is_leader = leads_next_section();
    stop_the_world(is_leader, [&] { span("major_gc_phase_change"); });
    if (is_leader) span("finalise_update_last");
  }

  void counter() { count(single_counters[shape(single_counters.size())], 1 + value(100'000)); }

  void alloc() {
    Plan::Buckets buckets{};
    for (std::size_t i = 1; i < buckets.size(); ++i)
      buckets[i] = value(10'000 / i);  // small blocks are the most frequent
    step(EventKind::alloc, 0, plan_.buckets_.size());
    plan_.buckets_.push_back(buckets);
  }

  void request() {
    user(EventKind::user_int, "queued", value(64));
    user(EventKind::user_begin, "request");
    if (shape(3) == 0) user(EventKind::user_unit, "cache_miss");
    message();
    user(EventKind::user_int, "bytes_sent", value(1 << 20));
    user(EventKind::user_end, "request");
    if (shape(4) == 0) user(EventKind::user_unit, "timer");
  }

  void queries() {
    user(EventKind::user_begin, "request");
    for (std::uint64_t left = 1 + shape(3); left > 0; --left) {
      user(EventKind::user_begin, "query");
      user(EventKind::user_end, "query");
    }
    user(EventKind::user_end, "request");
  }

  void message() {
    // Usually short, sometimes up to the limit. The size is the same for all domains, so that their rings fill equally.
    constexpr std::uint64_t usual_bytes = 48, usual_share = 16;
    const std::uint64_t max =
        shape(usual_share) == 0 ? options_.max_payload : std::min<std::uint64_t>(usual_bytes, options_.max_payload);
    const std::uint64_t size = shape(max + 1);
    const std::size_t offset = plan_.payloads_.size();
    for (std::uint64_t i = 0; i < size; ++i) plan_.payloads_.push_back(static_cast<std::byte>(value(256)));
    user(EventKind::user_custom, "message", offset);
    plan_.steps_.back().size = static_cast<std::uint32_t>(size);
  }

  void begin(std::string_view phase) { phase_step(EventKind::begin, phase); }
  void end(std::string_view phase) { phase_step(EventKind::end, phase); }
  void phase_step(EventKind kind, std::string_view phase) {
    if (const auto id = find_phase(options_.family, phase)) step(kind, *id);
  }
  void span(std::string_view phase) {
    begin(phase);
    end(phase);
  }
  template <typename Work>
  void span(std::string_view phase, Work work) {
    begin(phase);
    work();
    end(phase);
  }

  void count(std::string_view counter, std::uint64_t value) {
    if (const auto id = find_counter(options_.family, counter)) step(EventKind::counter, *id, value);
  }

  void user(EventKind kind, std::string_view event, std::uint64_t value = 0) {
    step(kind, std::ranges::find(user_events, event, &UserEventSpec::name) - user_events.begin(), value);
  }

  template <typename Id>
  void step(EventKind kind, Id id, std::uint64_t value = 0) {
    plan_.steps_.push_back({.kind = kind, .id = static_cast<std::uint16_t>(id), .size = 0, .value = value});
  }

  /// A random number for the shape, or for a value: 0 to `bound` - 1.
  std::uint64_t shape(std::uint64_t bound) { return shape_() % bound; }
  std::uint64_t value(std::uint64_t bound) { return values_() % bound; }

  Plan& plan_;
  PlanOptions options_;
  std::mt19937_64 shape_;
  std::mt19937_64 values_;
  std::uint64_t sections_ = 0;
  std::uint64_t slices_ = 0;
  std::uint64_t heap_words_ = 150'000;
};

Plan Plan::make(const PlanOptions& options) {
  Plan plan;
  Composer composer(plan, options);
  std::array<std::uint64_t, part_count> events{};
  while (plan.steps_.size() < min_steps) {
    const Part part = next_part(options.mix, events);
    const std::size_t before = plan.steps_.size();
    composer.add(part);
    plan.block_ends_.push_back(plan.steps_.size());
    events[static_cast<std::size_t>(part)] += plan.steps_.size() - before;
  }
  return plan;
}

std::size_t Plan::block_end(std::size_t position) const {
  return *std::ranges::lower_bound(block_ends_, position);
}

EventCounts Plan::counts(std::uint64_t written) const {
  const std::uint64_t rounds = written / steps_.size();
  const std::size_t rest = written % steps_.size();
  EventCounts counts{};
  for (std::size_t i = 0; i < steps_.size(); ++i)
    counts[static_cast<std::size_t>(steps_[i].kind)] += rounds + (i < rest ? 1 : 0);
  return counts;
}

}  // namespace rtev::load
