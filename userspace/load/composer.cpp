// SPDX-License-Identifier: MIT
#include "load/composer.hpp"

#include <algorithm>
#include <array>

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

}  // namespace

Composer::Composer(Plan& plan, const PlanOptions& options)
    : plan_(plan),
      options_(options),
      shape_(options.seed),
      values_(options.seed * 0x9e3779b97f4a7c15 + options.domain) {}  // odd: different seeds give different values

void Composer::add(Part part) {
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

void Composer::collection() {
  if (shape(3) != 0) return minor_collection();
  major_slice();
  constexpr std::uint64_t slices_per_phase = 4;
  if (++slices_ % slices_per_phase == 0) phase_change();
}

bool Composer::leads_next_section() {
  return sections_++ % options_.domains == options_.domain;
}

// The other domains have two events around their section. The leader has two more events in it or after it, so that all
// plans have the same length.
template <typename Work>
void Composer::stop_the_world(bool is_leader, Work work) {
  const std::string_view role = is_leader ? "stw_leader" : "stw_handler";
  if (!is_leader) begin("interrupt_remote");
  span(role, [&] {
    span("stw_api_barrier");
    work();
  });
  if (!is_leader) end("interrupt_remote");
}

void Composer::minor_collection() {
  const bool is_leader = leads_next_section();
  stop_the_world(is_leader, [&] { minor_heap(is_leader); });
}

void Composer::minor_heap(bool is_leader) {
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

void Composer::major_slice() {
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

void Composer::phase_change() {
  const bool is_leader = leads_next_section();
  stop_the_world(is_leader, [&] { span("major_gc_phase_change"); });
  if (is_leader) span("finalise_update_last");
}

void Composer::counter() {
  count(single_counters[shape(single_counters.size())], 1 + value(100'000));
}

void Composer::alloc() {
  Plan::Buckets buckets{};
  for (std::size_t i = 1; i < buckets.size(); ++i)
    buckets[i] = value(10'000 / i);  // small blocks are the most frequent
  plan_.steps_.push_back({.kind = EventKind::alloc, .id = 0, .size = 0, .value = plan_.buckets_.size()});
  plan_.buckets_.push_back(buckets);
}

void Composer::request() {
  user(EventKind::user_int, "queued", value(64));
  user(EventKind::user_begin, "request");
  if (shape(3) == 0) user(EventKind::user_unit, "cache_miss");
  message();
  user(EventKind::user_int, "bytes_sent", value(1 << 20));
  user(EventKind::user_end, "request");
  if (shape(4) == 0) user(EventKind::user_unit, "timer");
}

void Composer::queries() {
  user(EventKind::user_begin, "request");
  for (std::uint64_t left = 1 + shape(3); left > 0; --left) {
    user(EventKind::user_begin, "query");
    user(EventKind::user_end, "query");
  }
  user(EventKind::user_end, "request");
}

void Composer::message() {
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

void Composer::begin(std::string_view phase) {
  if (const auto id = find_phase(options_.family, phase))
    plan_.steps_.push_back({.kind = EventKind::begin, .id = static_cast<std::uint16_t>(*id), .size = 0, .value = 0});
}

void Composer::end(std::string_view phase) {
  if (const auto id = find_phase(options_.family, phase))
    plan_.steps_.push_back({.kind = EventKind::end, .id = static_cast<std::uint16_t>(*id), .size = 0, .value = 0});
}

void Composer::span(std::string_view phase) {
  begin(phase);
  end(phase);
}

template <typename Work>
void Composer::span(std::string_view phase, Work work) {
  begin(phase);
  work();
  end(phase);
}

void Composer::count(std::string_view counter, std::uint64_t value) {
  if (const auto id = find_counter(options_.family, counter))
    plan_.steps_.push_back(
        {.kind = EventKind::counter, .id = static_cast<std::uint16_t>(*id), .size = 0, .value = value});
}

void Composer::user(EventKind kind, std::string_view event, std::uint64_t value) {
  const auto index = std::ranges::find(user_events, event, &UserEventSpec::name) - user_events.begin();
  plan_.steps_.push_back({.kind = kind, .id = static_cast<std::uint16_t>(index), .size = 0, .value = value});
}

}  // namespace rtev::load
