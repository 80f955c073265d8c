// SPDX-License-Identifier: MIT
#include "analysis/stats/stats_state.hpp"

#include <algorithm>
#include <bit>

#include "base/saturating_sum.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_named_user_events = 64;  ///< of a process, that are counted by name

}  // namespace

void Stats::Process::learn(const ProcessInfo& from) {
  stats.pid = from.pid;
  stats.start_ticks = from.start_ticks;
  stats.comm = from.name;
  stats.exe = from.exe;
  stats.runtime = from.runtime;
  stats.version = from.version;
  stats.family = from.family;
  if (stats.events != EventsRead::yes) stats.events = events_read(from);
  if (from.max_rss_bytes != 0) learn_memory(from.max_rss_bytes);
}

Stats::Incarnation& Stats::Process::domain_at(std::uint16_t domain, std::uint64_t time_ns) {
  if (domain >= domains.size()) {
    const std::size_t before = domains.capacity();
    domains.resize(domain + std::size_t{1});
    charge((domains.capacity() - before) * sizeof(Domain));
  }
  auto& current = domains[domain].current;
  if (!current) {
    current = std::make_unique<Incarnation>();
    charge(sizeof(Incarnation));
    current->domain = domain;
    current->number = ++domains[domain].incarnations;
    current->begin_ns = current->first_ns = current->last_ns = std::max(time_ns, shown_from_ns);
  }
  return *current;
}

Stats::Incarnation* Stats::Process::domain_during(std::int32_t domain, std::uint64_t begin_ns) {
  for (const auto& old : retired | std::views::reverse) {
    if (old->domain == domain && old->end_ns > begin_ns) return old.get();
  }
  const auto number = static_cast<std::size_t>(domain);
  return domain >= 0 && number < domains.size() ? domains[number].current.get() : nullptr;
}

void Stats::Process::count(const Event& event, const Batch& batch, const RingInfo& ring) {
  const std::uint16_t number = Source::unpack(event.source).domain;
  Incarnation* const domain = is_merged(number) ? nullptr : &domain_at(number, event.time);
  if (domain) {
    domain->begin_ns = std::min(domain->begin_ns, std::max(event.time, shown_from_ns));
    domain->last_ns = std::max(event.time, shown_from_ns);
  }
  Tally& tally = domain ? domain->tally : others;
  switch (event.kind) {
    case EventKind::lost:
      ++tally.losses;
      tally.unprobed += event.id == static_cast<std::uint16_t>(LossReason::unprobed);
      if (domain) domain->open_spans.clear();
      libraries.forget(index, number);
      if (const auto loss = batch.payload_as<Loss>(event))
        tally.lost_words = saturating_sum(tally.lost_words, loss->words);
      return;
    case EventKind::counter:
      if (event.id < tally.counters.size()) {
        if (domain) {
          set_gauge(event.id, tally.counters[event.id].last, event.value);
          note_heap(event.id, event.time);
        }
        tally.counters[event.id].add(event.value);
      }
      break;
    case EventKind::alloc:
      if (const auto flushed = batch.payload_as<std::array<std::uint64_t, alloc_bucket_count>>(event)) {
        auto& buckets = stats.alloc_buckets;
        if (!buckets) buckets.emplace();
        // The runtime sets all but the first to zero after each flush.
        buckets->front() = std::max(buckets->front(), flushed->front());
        for (std::size_t i = 1; i < buckets->size(); ++i) (*buckets)[i] = saturating_sum((*buckets)[i], (*flushed)[i]);
      }
      break;
    case EventKind::user_unit:
    case EventKind::user_int:
    case EventKind::user_begin:
    case EventKind::user_custom:
      if (const auto what = libraries.add(event, batch, ring)) {
        count_library_span(domain, tally, event, ring, *what);
        break;
      }
      ++tally.user_events;
      if (const auto at = count_user_event(event, ring); domain && event.kind == EventKind::user_begin)
        domain->open_spans.begin({.event = event.id, .begin_ns = event.time, .counted_at = at});
      break;
    case EventKind::user_end:
      if (domain) end_span(domain->open_spans.end(event.id), event.time);
      break;
    case EventKind::lifecycle:
      if (domain && is_lifecycle(event, Lifecycle::domain_spawn))
        domain->begin_ns = std::min(domain->first_ns, std::max(event.time, shown_from_ns));
      if (is_lifecycle(event, Lifecycle::ring_resume)) paused = true;
      break;
    default:
      break;
  }
  ++tally.events;
}

void Stats::Process::note_heap(std::size_t id, std::uint64_t time_ns) {
  const HeapCounters& ids = HeapCounters::of(stats.family);
  if (id == ids.words) stats.heap_words.add(time_ns, gauges[id].last);
  if (id != ids.large || !ids.pool || !ids.pool_live) return;
  stats.live_words.add(time_ns, saturating_sum(gauges[*ids.pool_live].last, gauges[id].last));
  if (!ids.words) stats.heap_words.add(time_ns, saturating_sum(gauges[*ids.pool].last, gauges[id].last));
}

std::optional<std::size_t> Stats::Process::count_user_event(const Event& event, const RingInfo& ring,
                                                            std::optional<std::string_view> library_span) {
  auto& named = stats.user_events;
  auto found = std::ranges::find_if(named, [&](const UserEventStats& user) {
    return user.id == event.id && user.of_library == library_span.has_value() &&
           (!library_span || user.name == *library_span);
  });
  if (found == named.end()) {
    if (named.size() >= max_named_user_events) {
      ++stats.other_user_events;
      return std::nullopt;
    }
    named.push_back({.id = event.id,
                     .name = std::string(library_span.value_or(std::string_view{})),
                     .of_library = library_span.has_value()});
    found = std::prev(named.end());
    charge(sizeof(UserEventStats) + found->name.size());
  }
  ++found->count;
  // A name may come after the first events that need it.
  if (!library_span && found->name.empty() && std::has_single_bit(found->count) && ring.user_event_name) {
    found->name = ring.user_event_name(event.id);
    charge(found->name.size());
  }
  return static_cast<std::size_t>(found - named.begin());
}

void Stats::Process::count_library_span(Incarnation* domain, Tally& tally, const Event& event, const RingInfo& ring,
                                        const LibrarySpanEvent& what) {
  switch (what.what) {
    case LibrarySpanEvent::What::begin: {
      ++tally.user_events;
      const auto at = count_user_event(event, ring, what.name);
      // The name is needed for the end of a span without a fiber only.
      if (domain)
        domain->open_spans.begin({.begin_ns = event.time,
                                  .of_library = true,
                                  .fiber = what.fiber,
                                  .name = std::string(what.fiber ? std::string_view{} : what.name),
                                  .counted_at = at});
      break;
    }
    case LibrarySpanEvent::What::end:
      if (domain) end_span(domain->open_spans.end(what), event.time);
      break;
    case LibrarySpanEvent::What::exit:
      ++tally.user_events;
      count_user_event(event, ring);
      if (domain) domain->open_spans.end_fiber(*what.fiber);
      break;
  }
}

void Stats::Process::end_span(const std::optional<OpenSpan>& span, std::uint64_t time_ns) {
  // The clock of the program may have gone back since its begin.
  if (!span || !span->counted_at || time_ns < span->begin_ns) return;
  Histogram& durations = stats.user_events[*span->counted_at].durations;
  const std::size_t before = durations.memory_bytes();
  durations.record(time_ns - span->begin_ns);
  charge(durations.memory_bytes() - before);
}

void Stats::Process::retire(std::unique_ptr<Incarnation> domain, std::uint64_t time_ns, std::size_t max_retired) {
  domain->ended = true;
  domain->end_ns = std::max(time_ns, domain->last_ns);
  libraries.forget(index, domain->domain);
  if (!ending) {
    // Other domains take over its heap. Of a process that ends the last values stay.
    for (std::size_t id = 0; id < domain->tally.counters.size(); ++id)
      set_gauge(id, domain->tally.counters[id].last, 0);
  }
  retired.push_back(std::move(domain));
  if (retired.size() <= max_retired) return;
  merge(*retired.front());
}

void Stats::Process::merge(const Incarnation& old) {
  Tally tally = old.tally;
  tally.wall_ns = distance(old.begin_ns, old.end_ns);
  tally.gc_ns = std::min(tally.gc_ns, tally.wall_ns);
  others += tally;
  ++other_count;
  std::erase_if(retired, [&](const auto& domain) { return domain.get() == &old; });
  uncharge(sizeof(Incarnation));
}

void Stats::Process::merge(Domain& domain) {
  const Incarnation& from = *domain.current;
  others += from.tally;
  ++other_count;
  other_domains.begin(from.begin_ns);
  if (from.pause_since_ns) other_pauses.begin(*from.pause_since_ns);
  lacks_collections |= from.domain == 0;
  lacks_heap = true;
  domain.merged = true;
  domain.merged_adopted = from.adopted;
  domain.current.reset();
  uncharge(sizeof(Incarnation));
}

Tally Stats::Process::others_until(std::uint64_t time_ns) const {
  Tally tally = others;
  tally.wall_ns = saturating_sum(tally.wall_ns, other_domains.until(time_ns));
  tally.gc_ns = saturating_sum(tally.gc_ns, other_pauses.until(time_ns));
  return tally;
}

}  // namespace rtev
