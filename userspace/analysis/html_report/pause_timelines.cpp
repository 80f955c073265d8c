// SPDX-License-Identifier: MIT
#include "analysis/html_report/pause_timelines.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "base/saturating_sum.hpp"
#include "rtev/names.hpp"

namespace rtev {
namespace {

/// Of a phase lane no one can read more.
constexpr std::size_t max_open_phases = 64, max_followed_domains = std::size_t{1} << 15;

/// How much is shown before and after a pause.
std::uint64_t margin_of(std::uint64_t pause_ns) {
  constexpr std::uint64_t least_ns = 20'000, most_ns = 20'000'000;
  return std::clamp(pause_ns / 8, least_ns, most_ns);
}

/// The longest of them in their order. True if some had to go.
template <typename Interval>
bool keep_longest(std::vector<Interval>& intervals, std::size_t most) {
  if (intervals.size() <= most) return false;
  std::vector<std::uint64_t> lengths;
  lengths.reserve(intervals.size());
  for (const Interval& each : intervals) lengths.push_back(each.end_ns - each.begin_ns);
  const auto nth = lengths.begin() + static_cast<std::ptrdiff_t>(most);
  std::ranges::nth_element(lengths, nth, std::greater<>());
  const std::uint64_t too_short = *nth;
  std::erase_if(intervals, [&](const Interval& each) { return each.end_ns - each.begin_ns <= too_short; });
  return true;
}

/// Appends to what is in order by end.
template <typename Entry>
void remember(std::deque<Entry>& past, Entry entry, std::size_t most, std::uint64_t& forgotten_ns) {
  if (!past.empty()) entry.end_ns = std::max(entry.end_ns, past.back().end_ns);
  past.push_back(entry);
  if (past.size() <= most) return;
  forgotten_ns = std::max(forgotten_ns, past.front().end_ns);
  past.pop_front();
}

}  // namespace

PauseTimelines::PauseTimelines(std::size_t max_bytes)
    : max_past_phases_(max_bytes / 3 / sizeof(PauseTimeline::Phase)),
      max_past_states_(max_bytes / 2 / sizeof(PauseTimeline::State)),
      max_past_samples_(max_bytes / 6 / sizeof(PauseTimeline::StackSample)) {}

void PauseTimelines::add(const Event& event, const Batch& batch, const Registry& registry) {
  if (event.time >= next_ns_) [[unlikely]]
    pass(event.time);
  switch (event.kind) {
    case EventKind::sched_switch:
    case EventKind::wakeup:
      threads_.add(event, batch, registry);
      return;
    case EventKind::sample:
      if (const auto sample = batch.payload_as<Sample>(event)) {
        remember(samples_,
                 {.end_ns = event.time,
                  .pid = sample->pid,
                  .tid = sample->tid,
                  .domain = sample->domain,
                  .kind = static_cast<SampleKind>(event.id),
                  .stack = sample->stack},
                 max_past_samples_, forgotten_ns_);
      }
      return;
    case EventKind::lost:
    case EventKind::process:
      finder_.add(event, batch, registry);
      threads_.add(event, batch, registry);
      return;
    default:
      finder_.add(event, batch, registry);
      return;
  }
}

void PauseTimelines::add(const PauseDetails& pause) {
  const std::uint64_t pause_ns = pause.duration_ns();
  const std::uint64_t margin_ns = margin_of(pause_ns);
  PauseTimeline timeline{.process = pause.domain.process,
                         .pid = pause.domain.pid,
                         .family = pause.domain.family,
                         .begin_ns = pause.begin_ns - std::min(pause.begin_ns, margin_ns),
                         .end_ns = pause.end_ns + margin_ns,
                         .pause_ns = pause_ns};
  for (auto& waiting : waiting_) {
    if (!waiting.covers(timeline.process, pause.begin_ns) && !waiting.covers(timeline.process, pause.end_ns)) continue;
    // The same section in another domain: one picture shows both. A row of overlapping pauses must not make it endless.
    constexpr std::uint64_t most_longer = 3;
    const std::uint64_t begin_ns = std::min(waiting.begin_ns, timeline.begin_ns);
    const std::uint64_t end_ns = std::max(waiting.end_ns, timeline.end_ns);
    if (end_ns - begin_ns > most_longer * std::max(pause_ns, waiting.pause_ns)) continue;
    waiting.begin_ns = begin_ns;
    waiting.end_ns = end_ns;
    waiting.pause_ns = std::max(waiting.pause_ns, pause_ns);
    return;
  }
  if (timelines_.size() >= max_timelines && pause_ns <= timelines_.back().pause_ns) return;
  if (waiting_.size() >= max_timelines) {
    const auto least = std::ranges::min_element(waiting_, {}, &PauseTimeline::pause_ns);
    if (least->pause_ns >= pause_ns) return;
    waiting_.erase(least);
  }
  next_ns_ = std::min(next_ns_, timeline.end_ns);
  waiting_.push_back(std::move(timeline));
}

void PauseTimelines::finish(std::uint64_t time_ns) {
  for (PauseTimeline& timeline : std::exchange(waiting_, {})) capture(std::move(timeline), time_ns);
  next_ns_ = UINT64_MAX;
}

const PauseTimeline* PauseTimelines::find(ProcessIndex process, std::uint64_t time_ns) const {
  const auto found = std::ranges::find_if(timelines_, [&](const auto& one) { return one.covers(process, time_ns); });
  return found != timelines_.end() ? &*found : nullptr;
}

void PauseTimelines::on_phase_begin(const DomainLife& life, const PhaseBegin& phase) {
  if (domains_.size() >= max_followed_domains && !domains_.contains(life.key())) return;
  Domain& domain = domains_[life.key()];
  domain.life = life;
  if (domain.open.size() < max_open_phases) domain.open.push_back({.begin_ns = phase.time_ns, .phase = phase.phase});
}

void PauseTimelines::close(const DomainLife& life, const PhaseEnd& phase, bool ended) {
  const auto found = domains_.find(life.key());
  if (found == domains_.end()) return;
  auto& open = found->second.open;
  const auto innermost = std::ranges::find_if(open.rbegin(), open.rend(), [&](const Open& one) {
    return one.phase == phase.phase && one.begin_ns == phase.begin_ns;
  });
  if (innermost == open.rend()) return;
  const auto depth = static_cast<std::uint16_t>(std::distance(innermost, open.rend()) - 1);
  const std::uint64_t inside_ns = innermost->inside_ns;
  open.erase(std::next(innermost).base());
  if (!ended) return;
  const std::uint64_t ns = phase.end_ns - phase.begin_ns;
  if (depth > 0) open[depth - 1U].inside_ns += ns;
  if (!phase_name(life.family, phase.phase).empty()) {
    PhaseTotal& total = totals_[{life.family, phase.phase}];
    ++total.count;
    total.longest_ns = std::max(total.longest_ns, ns);
    total.total_ns = saturating_sum(total.total_ns, ns);
    total.own_ns = saturating_sum(total.own_ns, ns - std::min(ns, inside_ns));
  }
  remember(phases_,
           {.begin_ns = phase.begin_ns,
            .end_ns = phase.end_ns,
            .process = life.process,
            .domain = life.domain,
            .phase = phase.phase,
            .depth = depth},
           max_past_phases_, forgotten_ns_);
}

PauseTimeline::State PauseTimelines::state_of(const ThreadInterval& interval) {
  return {.begin_ns = interval.begin_ns,
          .end_ns = interval.end_ns,
          .pid = interval.pid,
          .tid = interval.tid,
          .domain = interval.domain,
          .cpu = interval.cpu,
          .state = interval.state,
          .is_woken = interval.woken_by.has_value(),
          .by = interval.woken_by ? interval.woken_by : interval.preempted_by};
}

void PauseTimelines::on_thread_interval(const ThreadInterval& interval) {
  remember(states_, state_of(interval), max_past_states_, forgotten_ns_);
}

void PauseTimelines::pass(std::uint64_t time_ns) {
  next_ns_ = UINT64_MAX;
  for (PauseTimeline& timeline : std::exchange(waiting_, {})) {
    if (timeline.end_ns <= time_ns) {
      capture(std::move(timeline), time_ns);
    } else {
      next_ns_ = std::min(next_ns_, timeline.end_ns);
      waiting_.push_back(std::move(timeline));
    }
  }
}

void PauseTimelines::capture(PauseTimeline timeline, std::uint64_t now_ns) {
  const auto collect = [&](const auto& past, auto& into, const auto& is_its_own) {
    auto entry = std::ranges::partition_point(past, [&](const auto& one) { return one.end_ns < timeline.begin_ns; });
    for (; entry != past.end(); ++entry)
      if (is_its_own(*entry)) into.push_back(*entry);
  };
  collect(phases_, timeline.phases, [&](const PauseTimeline::Phase& phase) {
    return phase.process == timeline.process && phase.begin_ns < timeline.end_ns;
  });
  collect(states_, timeline.states, [&](const PauseTimeline::State& state) {
    return state.pid == timeline.pid && state.begin_ns < timeline.end_ns;
  });
  collect(samples_, timeline.samples, [&](const PauseTimeline::StackSample& sample) {
    return sample.pid == timeline.pid && sample.end_ns < timeline.end_ns;
  });
  add_present(timeline, now_ns);
  const bool has_cut_phases = keep_longest(timeline.phases, max_phases);
  const bool has_cut_states = keep_longest(timeline.states, max_states);
  if (timeline.samples.size() > max_samples) timeline.samples.resize(max_samples);
  timeline.is_cut = has_cut_phases || has_cut_states || forgotten_ns_ > timeline.begin_ns;
  keep(std::move(timeline));
}

/// What has not ended.
void PauseTimelines::add_present(PauseTimeline& timeline, std::uint64_t now_ns) const {
  std::set<std::int32_t> tids;
  for (const PauseTimeline::State& state : timeline.states) tids.insert(state.tid);
  const std::uint64_t first_key = std::uint64_t{timeline.process} << 32;
  for (auto at = domains_.lower_bound(first_key); at != domains_.end() && at->second.life.process == timeline.process;
       ++at) {
    const Domain& domain = at->second;
    if (const auto tid = threads_.writer_of(timeline.pid, domain.life.domain)) tids.insert(*tid);
    for (std::size_t depth = 0; depth < domain.open.size(); ++depth) {
      if (domain.open[depth].begin_ns >= timeline.end_ns) continue;
      timeline.phases.push_back({.begin_ns = domain.open[depth].begin_ns,
                                 .end_ns = std::max(now_ns, domain.open[depth].begin_ns),
                                 .process = timeline.process,
                                 .domain = domain.life.domain,
                                 .phase = domain.open[depth].phase,
                                 .depth = static_cast<std::uint16_t>(depth)});
    }
  }
  for (const std::int32_t tid : tids) {
    const auto lasts = threads_.current(tid, now_ns);
    if (lasts && lasts->pid == timeline.pid && lasts->begin_ns < timeline.end_ns)
      timeline.states.push_back(state_of(*lasts));
  }
}

void PauseTimelines::keep(PauseTimeline timeline) {
  // A shorter one of the same time shows less.
  const auto is_same = [&](const PauseTimeline& other) {
    return other.process == timeline.process && other.begin_ns <= timeline.end_ns && other.end_ns >= timeline.begin_ns;
  };
  for (const PauseTimeline& other : timelines_)
    if (is_same(other) && other.begin_ns <= timeline.begin_ns && other.end_ns >= timeline.end_ns) return;
  std::erase_if(timelines_, [&](const PauseTimeline& other) {
    return timeline.begin_ns <= other.begin_ns && timeline.end_ns >= other.end_ns && is_same(other);
  });
  const auto place =
      std::ranges::find_if(timelines_, [&](const PauseTimeline& other) { return other.pause_ns < timeline.pause_ns; });
  timelines_.insert(place, std::move(timeline));
  if (timelines_.size() > max_timelines) timelines_.pop_back();
}

}  // namespace rtev
