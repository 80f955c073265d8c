// SPDX-License-Identifier: MIT
#include "flight/trigger_finder.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "analysis/stats/stats_figures.hpp"
#include "base/text_format.hpp"
#include "stream/span_tracker.hpp"

namespace rtev::flight {
namespace {

constexpr std::uint64_t min_check_ns = 1'000'000, max_check_ns = 100'000'000;

bool is_exit(const Event& event) {
  return event.kind == EventKind::process && event.id == static_cast<std::uint16_t>(ProcessAction::exit);
}

}  // namespace

std::string value_text(const Condition& condition, double value) {
  using What = Condition::What;
  const auto whole = static_cast<std::uint64_t>(std::max(value, 0.0));
  switch (condition.what) {
    case What::pause:
    case What::span:
    case What::sched_delay:
      return fmt::format("{}", Duration{whole});
    case What::heap:
      return fmt::format("{}", Size{whole});
    case What::gc_share:
      return fmt::format("{:.1f}%", value * 100);
    case What::lost:
      break;
  }
  return fmt::format("{}", Grouped{whole});
}

TriggerFinder::TriggerFinder(std::vector<Condition> conditions, Report report)
    : conditions_(std::move(conditions)), report_(std::move(report)), check_ns_(max_check_ns) {
  for (std::size_t i = 0; i < std::min<std::size_t>(conditions_.size(), 64); ++i) {
    const Condition& condition = conditions_[i];
    masks_[static_cast<std::size_t>(condition.what)] |= Mask{1} << i;
    if (condition.what == What::gc_share) shares_.push_back({.condition = i});
    if (condition.what == What::pause || condition.what == What::span)
      check_ns_ = std::clamp(static_cast<std::uint64_t>(condition.limit) / 8, min_check_ns, check_ns_);
  }
  if (mask_of(What::pause) != 0 || !shares_.empty()) pauses_.emplace(static_cast<PauseListener&>(*this));
  if (mask_of(What::sched_delay) != 0) threads_.emplace(static_cast<ThreadObserver*>(this));
}

void TriggerFinder::consume(const Batch& batch, const Registry& registry) {
  registry_ = &registry;
  const bool wants_spans = mask_of(What::span) != 0, wants_heap = mask_of(What::heap) != 0,
             wants_lost = mask_of(What::lost) != 0;
  for (const Event& event : batch.events()) {
    if (pauses_) pauses_->add(event, batch, registry);
    if (threads_ && event.kind >= EventKind::lost) threads_->add(event, batch, registry);
    if (wants_spans) spans(event, batch, registry);
    if (wants_heap && (event.kind == EventKind::counter || event.kind == EventKind::lifecycle || is_exit(event)))
      heap(event, registry);
    if (wants_lost && event.kind == EventKind::lost) lost(event, batch, registry);
    if (!is_exit(event)) continue;
    const auto record = batch.payload_as<ProcessRecord>(event);
    if (!record) continue;
    std::erase_if(span_rings_, [&](const auto& ring) { return ring.second.process == record->process; });
    std::erase_if(heap_rings_, [&](const auto& ring) { return ring.second.process == record->process; });
    std::erase_if(named_, [&](const auto& name) { return name.second.process == record->process; });
    heaps_.erase(record->process);
  }
  registry_ = nullptr;
}

void TriggerFinder::advance(std::uint64_t time_ns, const Registry& registry) {
  registry_ = &registry;
  if (time_ns >= next_check_ns_) {
    next_check_ns_ = time_ns + check_ns_;
    check_open(time_ns);
  }
  if (!shares_.empty()) check_shares(time_ns);
  registry_ = nullptr;
}

void TriggerFinder::check_at(std::uint64_t time_ns, const Registry& registry) {
  registry_ = &registry;
  check_open(time_ns);
  registry_ = nullptr;
}

TriggerFinder::Mask TriggerFinder::longer(What what, Mask among, std::uint64_t ns) const {
  Mask met = 0;
  for (Mask left = mask_of(what) & among; left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    if (static_cast<double>(ns) > conditions_[i].limit) met |= Mask{1} << i;
  }
  return met;
}

void TriggerFinder::report(Mask conditions, ProcessIndex process, std::uint64_t time_ns, double value) {
  for (; conditions != 0; conditions &= conditions - 1) {
    report_({.condition = static_cast<std::size_t>(std::countr_zero(conditions)),
             .process = process,
             .time_ns = time_ns,
             .value = value},
            *registry_);
  }
}

void TriggerFinder::check_open(std::uint64_t time_ns) {
  for (auto& [key, pause] : open_pauses_) {
    const std::uint64_t ns = time_ns - std::min(time_ns, pause.begin_ns);
    const Mask met = longer(What::pause, ~pause.reported, ns);
    pause.reported |= met;
    report(met, pause.process, time_ns, static_cast<double>(ns));
  }
  for (auto& [source, ring] : span_rings_) {
    for (OpenSpan& span : ring.open) {
      const std::uint64_t ns = time_ns - std::min(time_ns, span.begin_ns);
      const Mask met = longer(What::span, span.wanted & ~span.reported, ns);
      span.reported |= met;
      report(met, ring.process, time_ns, static_cast<double>(ns));
    }
  }
}

void TriggerFinder::on_pause_begin(const DomainLife& domain, const PhaseBegin& root) {
  if (mask_of(What::pause) != 0) open_pauses_[domain.key()] = {.process = domain.process, .begin_ns = root.time_ns};
}

void TriggerFinder::on_pause_end(const DomainLife& domain, const PhaseEnd& root) {
  const std::uint64_t ns = root.end_ns - root.begin_ns;
  for (Share& share : shares_) {
    const auto process = share.processes.find(domain.process);
    if (process != share.processes.end()) process->second.ns[process->second.now] += ns;
  }
  const auto open = open_pauses_.find(domain.key());
  if (open == open_pauses_.end()) return;
  report(longer(What::pause, ~open->second.reported, ns), domain.process, root.end_ns, static_cast<double>(ns));
  open_pauses_.erase(open);
}

void TriggerFinder::on_pause_dropped(const DomainLife& domain, const PhaseEnd& /*root*/, Unfinished /*reason*/) {
  open_pauses_.erase(domain.key());
}

void TriggerFinder::on_domain_begin(const DomainLife& domain, std::uint64_t time_ns, bool /*certain*/) {
  for (Share& share : shares_) {
    SharePart& part =
        share.processes.try_emplace(domain.process, SharePart{.process = domain.process, .since_ns = time_ns})
            .first->second;
    ++part.domains;
  }
}

void TriggerFinder::on_domain_end(const DomainLife& domain, std::uint64_t /*time_ns*/) {
  for (Share& share : shares_) {
    const auto process = share.processes.find(domain.process);
    if (process != share.processes.end() && --process->second.domains == 0) share.processes.erase(process);
  }
}

/// Once in each part of the time, of which the last ones are full.
void TriggerFinder::check_shares(std::uint64_t time_ns) {
  for (Share& share : shares_) {
    if (time_ns < share.next_ns) continue;
    const Condition& condition = conditions_[share.condition];
    constexpr std::size_t parts = std::tuple_size_v<decltype(SharePart::ns)>;
    const std::uint64_t part_ns = condition.over_ns / parts;
    share.next_ns = time_ns + part_ns;
    for (auto& [index, process] : share.processes) {
      if (time_ns >= process.since_ns + condition.over_ns) {
        const auto sum = std::accumulate(process.ns.begin(), process.ns.end(), std::uint64_t{0});
        const double value = static_cast<double>(sum) / (static_cast<double>(condition.over_ns) * process.domains);
        if (value > condition.limit) report(Mask{1} << share.condition, index, time_ns, std::min(value, 1.0));
      }
      process.now = (process.now + 1) % parts;
      process.ns[process.now] = 0;
    }
  }
}

void TriggerFinder::on_thread_interval(const ThreadInterval& interval) {
  if (interval.state != ThreadState::runnable || interval.first_state != ThreadState::runnable) return;
  const std::uint64_t ns = interval.end_ns - std::min(interval.end_ns, interval.begin_ns);
  const Mask met = longer(What::sched_delay, ~Mask{0}, ns);
  if (met == 0) return;
  ProcessIndex process = 0;
  for (const auto& [index, info] : registry_->indexed_processes())
    if (info.pid == interval.pid) process = index;  // the newest
  report(met, process, interval.end_ns, static_cast<double>(ns));
}

TriggerFinder::Mask TriggerFinder::wanted(const std::string& name) const {
  Mask matching = 0;
  for (std::size_t i = 0; i < conditions_.size(); ++i) {
    if (conditions_[i].what == What::span && ::fnmatch(conditions_[i].pattern.c_str(), name.c_str(), 0) == 0)
      matching |= Mask{1} << i;
  }
  return matching;
}

void TriggerFinder::begin_span(const Event& event, ProcessIndex process, OpenSpan span) {
  if (span_rings_.size() >= max_rings && !span_rings_.contains(event.source)) return;
  SpanRing& ring = span_rings_[event.source];
  if (ring.process != process) ring = {.process = process};
  if (ring.open.size() >= max_open_spans) ring.open.erase(ring.open.begin());
  span.begin_ns = event.time;
  ring.open.push_back(std::move(span));
}

/// `is_whole`: false if it does not count, as its end is that of its fiber.
void TriggerFinder::end_span(std::uint32_t source, std::uint64_t time_ns,
                             const std::function<bool(const OpenSpan&)>& ends, bool is_whole) {
  const auto ring = span_rings_.find(source);
  if (ring == span_rings_.end()) return;
  auto& open = ring->second.open;
  const auto found = std::ranges::find_if(open.rbegin(), open.rend(), ends);
  if (found == open.rend()) return;
  const OpenSpan span = std::move(*found);
  open.erase(std::prev(found.base()));
  const ProcessIndex process = ring->second.process;
  if (open.empty()) span_rings_.erase(ring);
  if (!is_whole || time_ns < span.begin_ns) return;
  const std::uint64_t ns = time_ns - span.begin_ns;
  report(longer(What::span, span.wanted & ~span.reported, ns), process, time_ns, static_cast<double>(ns));
}

void TriggerFinder::spans(const Event& event, const Batch& batch, const Registry& registry) {
  const Source source = Source::unpack(event.source);
  if (event.kind == EventKind::lost || is_lifecycle(event, Lifecycle::domain_terminate)) {
    const auto ring = span_rings_.find(event.source);
    if (ring == span_rings_.end()) return;
    libraries_.forget(ring->second.process, source.domain);
    span_rings_.erase(ring);
    return;
  }
  if (event.kind < EventKind::user_unit || event.kind > EventKind::user_custom) return;
  const RingInfo* const ring = registry.ring(source.slot);
  if (ring == nullptr) return;
  if (event.kind == EventKind::user_begin) {
    const std::uint32_t key = source.slot << 16 | event.id;
    auto known = named_.find(key);
    if (known == named_.end() || known->second.process != ring->process) {
      const std::string name(ring->user_event_name ? ring->user_event_name(event.id) : std::string_view{});
      if (name.empty() || named_.size() >= max_rings) return;  // it may come later
      known = named_.insert_or_assign(key, Named{.process = ring->process, .wanted = wanted(name)}).first;
    }
    if (known->second.wanted != 0)
      begin_span(event, ring->process, {.event = event.id, .wanted = known->second.wanted});
    return;
  }
  if (event.kind == EventKind::user_end) {
    if (span_rings_.empty()) return;
    return end_span(
        event.source, event.time, [&](const OpenSpan& span) { return !span.of_library && span.event == event.id; },
        true);
  }
  using LibraryWhat = LibrarySpanEvent::What;
  const auto what = libraries_.add(event, batch, *ring);
  if (!what) return;
  if (what->what == LibraryWhat::begin) {
    const std::string name(what->name);
    const Mask mask = wanted(name);
    // An end of a fiber has no name: so spans that do not match are opened, too.
    if (mask == 0 && !what->fiber) return;
    return begin_span(event, ring->process, {.wanted = mask, .of_library = true, .fiber = what->fiber, .name = name});
  }
  end_span(
      event.source, event.time,
      [&](const OpenSpan& span) {
        return span.of_library && span.fiber == what->fiber && (what->fiber || span.name == what->name);
      },
      what->what == LibraryWhat::end);
}

void TriggerFinder::heap(const Event& event, const Registry& registry) {
  const auto ring = heap_rings_.find(event.source);
  if (event.kind == EventKind::lifecycle) {
    // Other domains take over its heap.
    if (!is_lifecycle(event, Lifecycle::domain_terminate) || ring == heap_rings_.end()) return;
    auto& sums = heaps_[ring->second.process];
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] -= std::min(sums[i], ring->second.words[i]);
    heap_rings_.erase(ring);
    return;
  }
  if (event.kind != EventKind::counter) return;
  const auto family = registry.family_of(event);
  const RingInfo* const info = registry.ring(Source::unpack(event.source).slot);
  if (!family || info == nullptr) return;
  const HeapCounters& ids = HeapCounters::of(*family);
  const std::array<std::optional<std::size_t>, 3> counters{ids.words, ids.pool, ids.large};
  const auto counter = std::ranges::find(counters, std::optional<std::size_t>(event.id));
  if (counter == counters.end()) return;
  const auto i = static_cast<std::size_t>(counter - counters.begin());
  if (ring == heap_rings_.end() && heap_rings_.size() >= max_rings) return;
  HeapRing& of_domain = heap_rings_[event.source];
  if (of_domain.process != info->process) of_domain = {.process = info->process};
  auto& sums = heaps_[info->process];
  sums[i] += event.value;
  sums[i] -= std::min(sums[i], std::exchange(of_domain.words[i], event.value));
  const bool is_complete = ids.words ? i == 0 : i == 2;
  if (!is_complete) return;
  const std::uint64_t words = ids.words ? sums[0] : sums[1] + sums[2];
  const double bytes = static_cast<double>(words) * 8;
  for (std::size_t c = 0; c < conditions_.size(); ++c) {
    if (conditions_[c].what == What::heap && bytes > conditions_[c].limit)
      report(Mask{1} << c, info->process, event.time, bytes);
  }
}

void TriggerFinder::lost(const Event& event, const Batch& batch, const Registry& registry) {
  const auto reason = static_cast<LossReason>(event.id);
  if (reason != LossReason::overwritten && reason != LossReason::dropped && reason != LossReason::overflow) return;
  const auto loss = batch.payload_as<Loss>(event);
  const RingInfo* const ring = registry.ring(Source::unpack(event.source).slot);
  if (loss && loss->words > 0)
    report(mask_of(What::lost), ring != nullptr ? ring->process : 0, event.time, static_cast<double>(loss->words));
}

}  // namespace rtev::flight
