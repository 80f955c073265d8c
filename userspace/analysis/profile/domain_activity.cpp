// SPDX-License-Identifier: MIT
#include "analysis/profile/domain_activity.hpp"

#include <algorithm>

#include "stream/stw_phases.hpp"

namespace rtev {

void DomainActivity::add(const Event& event, const Batch& batch, const Registry& registry) {
  finder_.add(event, batch, registry);
  if (event.kind == EventKind::process && event.id == static_cast<std::uint16_t>(ProcessAction::exit)) {
    if (const auto record = batch.payload_as<ProcessRecord>(event)) forget_process(record->process, event.time);
  }
  if (event.kind < EventKind::user_unit || event.kind > EventKind::user_custom) return;
  if (const RingInfo* const ring = registry.ring(Source::unpack(event.source).slot)) user_event(event, batch, *ring);
}

void DomainActivity::finish(std::uint64_t time_ns) {
  finder_.finish(time_ns);
  for (const auto& [key, domain] : domains_) drop_spans(key, time_ns);
  domains_.clear();
}

const DomainActivity::Domain* DomainActivity::domain(ProcessIndex process, std::int32_t domain) const {
  if (domain < 0 || domain >= static_cast<std::int32_t>(rtev::max_domains)) return nullptr;
  const auto found = domains_.find({process, static_cast<std::uint16_t>(domain)});
  return found == domains_.end() ? nullptr : &found->second;
}

std::vector<std::uint64_t> DomainActivity::open_pauses(ProcessIndex process) const {
  std::vector<std::uint64_t> begins;
  const auto found = pauses_.find(process);
  if (found == pauses_.end()) return begins;
  begins.reserve(found->second.size());
  for (const auto& [domain, begin_ns] : found->second) begins.push_back(begin_ns);
  return begins;
}

std::string DomainActivity::name_of(const OpenSpan& span, const Registry& registry) {
  if (span.of_library) return span.name;
  const RingInfo* const ring = registry.ring(span.slot);
  return std::string(ring && ring->user_event_name ? ring->user_event_name(span.event) : std::string_view());
}

void DomainActivity::user_event(const Event& event, const Batch& batch, const RingInfo& ring) {
  const Source source = Source::unpack(event.source);
  if (event.kind == EventKind::user_begin) {
    if (Domain* const domain = add_domain({ring.process, source.domain}))
      domain->spans.begin({.slot = source.slot, .event = event.id, .begin_ns = event.time});
  } else if (event.kind == EventKind::user_end) {
    const auto domain = domains_.find({ring.process, source.domain});
    if (domain == domains_.end()) return;
    if (const auto span = domain->second.spans.end(event.id))
      observer_.on_span_end(ring.process, source.domain, *span, event.time, true);
  } else if (const auto what = libraries_.add(event, batch, ring)) {
    library_event(event, ring, *what);
  }
}

void DomainActivity::library_event(const Event& event, const RingInfo& ring, const LibrarySpanEvent& what) {
  using What = LibrarySpanEvent::What;
  const Source source = Source::unpack(event.source);
  Domain* const domain = add_domain({ring.process, source.domain});
  if (!domain) return;
  auto& spans = domain->spans;
  if (what.what == What::begin) {
    spans.begin({.slot = source.slot,
                 .begin_ns = event.time,
                 .of_library = true,
                 .fiber = what.fiber,
                 .name = std::string(what.name)});
  } else if (what.what == What::end) {
    if (const auto span = spans.end(what)) observer_.on_span_end(ring.process, source.domain, *span, event.time, true);
  } else if (what.fiber) {
    std::vector<OpenSpan> ended;
    std::ranges::copy_if(spans.all(), std::back_inserter(ended),
                         [&](const OpenSpan& span) { return span.fiber == what.fiber; });
    spans.end_fiber(*what.fiber);
    for (const OpenSpan& span : ended) observer_.on_span_end(ring.process, source.domain, span, event.time, false);
  }
}

void DomainActivity::on_phase_begin(const DomainLife& life, const PhaseBegin& phase) {
  // A wait of the program, in which its other threads go on.
  if (phase.phase == StwPhases::of(life.family).condition_wait) return;
  if (Domain* const domain = add_domain({life.process, life.domain}))
    domain->phases.emplace_back(life.family, phase.phase);
}

void DomainActivity::end_phase(const DomainLife& life, std::uint16_t phase) {
  const auto domain = domains_.find({life.process, life.domain});
  if (domain == domains_.end()) return;
  auto& phases = domain->second.phases;
  const auto found = std::ranges::find(phases.rbegin(), phases.rend(), std::pair{life.family, phase});
  if (found != phases.rend()) phases.erase(std::prev(found.base()));
}

void DomainActivity::on_pause_begin(const DomainLife& life, const PhaseBegin& root) {
  pauses_[life.process][life.domain] = root.time_ns;
}

void DomainActivity::end_pause(const DomainLife& life, const PhaseEnd& root, bool is_known) {
  if (const auto process = pauses_.find(life.process); process != pauses_.end()) {
    process->second.erase(life.domain);
    if (process->second.empty()) pauses_.erase(process);
  }
  observer_.on_pause_end(life.process, root.begin_ns, root.end_ns, is_known);
}

void DomainActivity::on_domain_end(const DomainLife& life, std::uint64_t time_ns) {
  drop_spans({life.process, life.domain}, time_ns);
  domains_.erase({life.process, life.domain});
}

/// Domains that write no phases have no end of their own.
void DomainActivity::forget_process(ProcessIndex process, std::uint64_t time_ns) {
  for (auto domain = domains_.lower_bound({process, 0}); domain != domains_.end() && domain->first.first == process;) {
    drop_spans(domain->first, time_ns);
    domain = domains_.erase(domain);
  }
  pauses_.erase(process);
}

DomainActivity::Domain* DomainActivity::add_domain(const Key& key) {
  if (domains_.size() < max_domains) return &domains_[key];
  const auto known = domains_.find(key);
  return known == domains_.end() ? nullptr : &known->second;
}

/// Their ends may be missing.
void DomainActivity::drop_spans(const Key& key, std::uint64_t time_ns) {
  libraries_.forget(key.first, key.second);
  const auto domain = domains_.find(key);
  if (domain == domains_.end()) return;
  const std::vector<OpenSpan> dropped = domain->second.spans.all();
  domain->second.spans.clear();
  for (const OpenSpan& span : dropped) observer_.on_span_end(key.first, key.second, span, time_ns, false);
}

}  // namespace rtev
