// SPDX-License-Identifier: MIT
#include "analysis/spans/spans_sink.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "base/text_format.hpp"

namespace rtev {
namespace {

/// What is left of a time without a part of it.
std::uint64_t rest(std::uint64_t whole_ns, std::uint64_t part_ns) {
  return whole_ns - std::min(whole_ns, part_ns);
}

}  // namespace

SpanTime& SpanTime::operator+=(const SpanTime& other) {
  for (std::uint64_t SpanTime::* const part :
       {&SpanTime::code, &SpanTime::gc, &SpanTime::domains, &SpanTime::no_cpu, &SpanTime::blocked, &SpanTime::unknown})
    this->*part += other.*part;
  return *this;
}

SpanTime SpanTime::of(const TimeSplit& span, const TimeSplit& pauses) {
  return {.code = rest(span.on_cpu, pauses.on_cpu),
          .gc = std::min(span.on_cpu, pauses.on_cpu),
          .domains = std::min(span.blocked(), pauses.blocked()),
          .no_cpu = span.runnable,
          .blocked = rest(span.blocked(), pauses.blocked()),
          .unknown = span.unknown};
}

Spans::~Spans() = default;

void Spans::header(const RunHeader& header) {
  header_ = header;
  finder_.header(header);
  last_ns_ = header.begin_ns();
}

void Spans::consume(const Batch& batch, const Registry& registry) {
  registry_ = &registry;
  stacks_ = &registry.stacks();
  for (const Event& event : batch.events()) {
    last_ns_ = std::max(last_ns_, event.time);
    read_programs_.add(event, batch, registry);
    finder_.add(event, batch, registry);
    time_.add(event, batch, registry);
    samples_.add(event, batch, registry);
    if (event.kind < EventKind::user_unit || event.kind > EventKind::user_custom) continue;
    const RingInfo* const ring = registry.ring(Source::unpack(event.source).slot);
    if (!ring) continue;
    if (event.kind == EventKind::user_begin) {
      begin(event, *ring);
    } else if (event.kind == EventKind::user_end) {
      end(event, *ring);
    } else if (const auto what = libraries_.add(event, batch, *ring)) {
      library_event(event, *ring, *what);
    }
  }
  registry_ = nullptr;
}

void Spans::summary(const RunSummary& summary, const Registry& registry) {
  last_ns_ = std::max(last_ns_, summary.end_ns);
  truncated_ = !summary.complete;
  header_.not_recorded.note(summary.events);
  read_ = read_programs_.programs(registry);
  lacks_ = lacks_of(with_scheduler_gaps(summary, scheduler_gaps()), registry);
  registry_ = &registry;
  finder_.finish(last_ns_);
  for (const auto& [key, domain] : domains_) {
    for (const Open& span : domain.open) miss(key.second, span, Unfinished::ended);
  }
  domains_.clear();
  registry_ = nullptr;
  for (auto& [key, group] : groups_) group.comm = registry.process(key.first).name;
}

/// Empty if it is not known yet: a name may come after the first events that need it.
std::string Spans::name_of(const RingInfo& ring, std::uint16_t event) {
  return std::string(ring.user_event_name ? ring.user_event_name(event) : std::string_view());
}

/// Of what does not match some names are remembered.
bool Spans::matches(const std::string& name) {
  if (::fnmatch(options_.pattern.c_str(), name.c_str(), 0) == 0) return true;
  if (other_names_.size() < max_other_names) other_names_.insert(name);
  return false;
}

/// Null if its name does not match, or there is no room.
SpanGroup* Spans::group_of(const Open& span) {
  const RingInfo* const ring = registry_ ? registry_->ring(span.slot) : nullptr;
  if (!ring) return nullptr;
  const std::string name = span.of_library ? span.name : name_of(*ring, span.event);
  if (!matches(name)) return nullptr;
  const auto found = groups_.find({ring->process, name});
  if (found != groups_.end()) return &found->second;
  if (groups_.size() >= max_groups) {
    ++ungrouped_;
    return nullptr;
  }
  const ProcessInfo& process = registry_->process(ring->process);
  return &groups_
              .emplace(GroupKey{ring->process, name}, SpanGroup{.pid = process.pid, .comm = process.name, .name = name})
              .first->second;
}

void Spans::begin(const Event& event, const RingInfo& ring) {
  if (const std::string name = name_of(ring, event.id); !name.empty() && !matches(name)) return;
  open(event, ring, {.event = event.id});
}

void Spans::open(const Event& event, const RingInfo& ring, Open span) {
  const Source source = Source::unpack(event.source);
  Domain& domain = domains_[{ring.process, source.domain}];
  // One whose end is missing.
  if (domain.open.size() >= (span.of_library ? max_library_spans : max_open)) {
    time_.stop(domain.open.front().meter, event.time);
    domain.open.erase(domain.open.begin());
  }
  span.slot = source.slot;
  span.late = (event.flags & flag_late) != 0;
  span.begin_ns = event.time;
  if (!span.of_library || matches(span.name))
    span.meter = time_.start(registry_->process(ring.process).pid, source.domain, event.time);
  domain.open.push_back(std::move(span));
}

void Spans::end(const Event& event, const RingInfo& ring) {
  const auto domain = domains_.find({ring.process, Source::unpack(event.source).domain});
  if (domain == domains_.end()) return;
  auto& open = domain->second.open;
  const auto found = std::ranges::find_if(open.rbegin(), open.rend(),
                                          [&](const Open& span) { return !span.of_library && span.event == event.id; });
  if (found == open.rend()) return;
  const Open span = std::move(*found);
  open.erase(std::prev(found.base()));
  finish(event, span);
}

void Spans::library_event(const Event& event, const RingInfo& ring, const LibrarySpanEvent& what) {
  using What = LibrarySpanEvent::What;
  if (what.what == What::begin) {
    const std::string name(what.name);
    // An end of a fiber has no name: so spans that do not match are opened, too.
    if (!what.fiber && !matches(name)) return;
    return open(event, ring, {.of_library = true, .fiber = what.fiber, .name = name});
  }
  const auto domain = domains_.find({ring.process, Source::unpack(event.source).domain});
  if (domain == domains_.end()) return;
  auto& open = domain->second.open;
  for (std::size_t i = open.size(); i-- > 0;) {
    if (!open[i].of_library || open[i].fiber != what.fiber || (!what.fiber && open[i].name != what.name)) continue;
    const Open span = std::move(open[i]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    if (what.what == What::end) return finish(event, span);
    // The fiber ended in it.
    time_.stop(span.meter, event.time);
    miss(Source::unpack(event.source).domain, span, Unfinished::no_end);
  }
}

void Spans::finish(const Event& event, const Open& span) {
  TimeSplit time = time_.stop(span.meter, event.time);
  const std::uint16_t number = Source::unpack(event.source).domain;
  if (event.time < span.begin_ns) return miss(number, span, Unfinished::clock);
  const std::uint64_t length_ns = event.time - span.begin_ns;
  SpanGroup* const group = options_.on_span ? nullptr : group_of(span);
  if (!options_.on_span && !group) return;
  if (length_ns < options_.min_ns) {
    if (group) ++group->below_min;
    return;
  }
  // What the scheduler did then has been folded into what it did since.
  if (span.late || (event.flags & flag_late) != 0) time = {.unknown = length_ns};
  Span ended{.domain = number,
             .begin_ns = span.begin_ns,
             .end_ns = event.time,
             .time = SpanTime::of(time, span.in_pauses),
             .pauses = span.pauses,
             .longest_pause_ns = span.longest_pause_ns,
             .paused_ns = span.in_pauses.total()};
  if (!group) return hand_on(span, std::move(ended), {});
  group->wall.record(length_ns);
  group->time += ended.time;
  auto& slowest = group->slowest;
  if (slowest.size() >= max_slowest && slowest.back().length_ns() >= length_ns) return;
  if (const auto tid = time_.writer_of(group->pid, ended.domain))
    ended.stacks = samples_.between(*tid, ended.begin_ns, ended.end_ns);
  const auto place = std::ranges::upper_bound(slowest, length_ns, std::ranges::greater{}, &Span::length_ns);
  slowest.insert(place, std::move(ended));
  if (slowest.size() > max_slowest) slowest.pop_back();
}

void Spans::on_pause_begin(const DomainLife& life, const PhaseBegin& root) {
  const auto domain = domains_.find({life.process, life.domain});
  if (domain == domains_.end() || domain->second.open.empty()) return;
  domain->second.pause = time_.start(life.pid, life.domain, root.time_ns);
}

void Spans::on_pause_end(const DomainLife& life, const PhaseEnd& root) {
  const auto domain = domains_.find({life.process, life.domain});
  if (domain == domains_.end() || !domain->second.pause) return;
  const TimeSplit time = time_.stop(*std::exchange(domain->second.pause, std::nullopt), root.end_ns);
  for (Open& span : domain->second.open) {
    if (span.begin_ns > root.begin_ns) continue;
    span.in_pauses += time;
    ++span.pauses;
    span.longest_pause_ns = std::max(span.longest_pause_ns, root.end_ns - root.begin_ns);
  }
}

void Spans::on_pause_dropped(const DomainLife& life, const PhaseEnd& root, Unfinished /*reason*/) {
  const auto domain = domains_.find({life.process, life.domain});
  if (domain == domains_.end() || !domain->second.pause) return;
  time_.stop(*std::exchange(domain->second.pause, std::nullopt), root.end_ns);
}

void Spans::on_loss(const DomainLife& life, const Loss& loss) {
  lost_.add(loss);
  drop(life, loss.to_ns, Unfinished::lost);
}

void Spans::drop(const DomainLife& life, std::uint64_t time_ns, Unfinished reason) {
  libraries_.forget(life.process, life.domain);
  const auto domain = domains_.find({life.process, life.domain});
  if (domain == domains_.end()) return;
  for (const Open& span : domain->second.open) {
    time_.stop(span.meter, time_ns);
    miss(life.domain, span, reason);
  }
  if (domain->second.pause) time_.stop(*domain->second.pause, time_ns);
  domains_.erase(domain);
}

/// Its length is unknown.
void Spans::miss(std::uint16_t domain, const Open& span, Unfinished reason) {
  if (options_.on_span)
    hand_on(span, {.domain = domain, .begin_ns = span.begin_ns, .end_ns = span.begin_ns}, reason);
  else if (SpanGroup* const group = group_of(span))
    ++group->unfinished;
}

void Spans::hand_on(const Open& open, Span span, std::optional<Unfinished> unfinished) {
  const RingInfo* const ring = registry_ ? registry_->ring(open.slot) : nullptr;
  if (!ring) return;
  std::string name = open.of_library ? open.name : name_of(*ring, open.event);
  if (!matches(name)) return;
  if (name.empty()) name = fmt::format("#{}", open.event);
  options_.on_span({.process = ring->process, .name = name, .span = std::move(span), .unfinished = unfinished});
}

LimitedDurations Spans::limited() const {
  LimitedDurations durations{.why_none = "no such span ended"};
  durations.all.reserve(groups_.size());
  for (const auto& [key, group] : groups_) {
    durations.all.push_back({.what = fmt::format("spans {}", Quoted{group.name}),
                             .comm = group.comm,
                             .pid = group.pid,
                             .durations = &group.wall});
    if (group.wall.count() != 0 || group.below_min != 0) durations.why_none.clear();
  }
  return durations;
}

SpansReport Spans::report() const {
  SpansReport report{.version = header_.version,
                     .run_ns = header_.start_ns,
                     .run_realtime_ns = header_.start_realtime_ns,
                     .start_ns = header_.begin_ns(),
                     .end_ns = last_ns_,
                     .truncated = truncated_,
                     .not_recorded = header_.not_recorded,
                     .read_programs = read_,
                     .lacks = lacks_,
                     .pattern = options_.pattern,
                     .min_ns = options_.min_ns,
                     .input = options_.input,
                     .full = options_.full,
                     .scheduler_seen = time_.switches_seen(),
                     .lost = lost_,
                     .ungrouped = ungrouped_,
                     .other_names = {other_names_.begin(), other_names_.end()},
                     .stacks = stacks_};
  for (const auto& [key, group] : groups_) report.groups.push_back(group);
  std::ranges::sort(report.groups, [](const SpanGroup& a, const SpanGroup& b) {
    return std::tuple(b.wall.total(), a.pid, a.name) < std::tuple(a.wall.total(), b.pid, b.name);
  });
  return report;
}

}  // namespace rtev
