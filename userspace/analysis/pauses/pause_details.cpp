// SPDX-License-Identifier: MIT
#include "analysis/pauses/pause_details.hpp"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

namespace rtev {
namespace {

/// Takes `part` out of `whole`, as much of it as is there; returns what that was.
TimeSplit take(TimeSplit& whole, const TimeSplit& part) {
  TimeSplit taken;
  for (const auto state : TimeSplit::parts) {
    taken.*state = std::min(whole.*state, part.*state);
    whole.*state -= taken.*state;
  }
  return taken;
}

}  // namespace

void SchedulingDetail::add(const ThreadInterval& interval, std::uint64_t from_ns, std::uint64_t to_ns,
                           const CpuHistory& cpus) {
  const std::uint64_t begin = std::max(interval.begin_ns, from_ns), end = std::min(interval.end_ns, to_ns);
  if (end <= begin) return;
  if (interval.state == ThreadState::on_cpu) {
    if (last_cpu_ >= 0 && interval.cpu != last_cpu_) ++migrations_;
    last_cpu_ = interval.cpu;
  } else if (interval.state == ThreadState::runnable) {
    const bool began_here = interval.begin_ns >= from_ns;
    if (interval.preempted_by && began_here) ++preempted_;
    if (interval.woken_by && began_here) add_waker(*interval.woken_by);
    const std::uint64_t accounted_from = std::max(begin, interval.accounted_from_ns);
    if (accounted_from < end)
      cpus.each(interval.cpu, accounted_from, end, [this](const CpuWait& wait) { add_wait(wait); });
  } else if (is_blocked(interval.state)) {
    ++blocked_;
    longest_block_ns_ = std::max(longest_block_ns_, end - begin);
  }
}

void SchedulingDetail::add_wait(const CpuWait& wait) {
  const auto same = [&](const CpuCompetitor& competitor) {
    return competitor.wait.cpu == wait.cpu && competitor.wait.had == wait.had &&
           competitor.wait.by.has_value() == wait.by.has_value() &&
           (!wait.by || competitor.wait.by->tid == wait.by->tid);
  };
  auto known = std::ranges::find_if(competitors_, same);
  if (known == competitors_.end() && competitors_.size() >= max_competitors) {
    // The one that matters least makes room.
    known =
        std::ranges::min_element(competitors_, {}, [](const CpuCompetitor& competitor) { return competitor.wait.ns; });
    if (known->wait.ns >= wait.ns) {
      other_competitors_ns_ += wait.ns;
      return;
    }
    other_competitors_ns_ += known->wait.ns;
    *known = {.wait = wait, .times = 1};
  } else if (known == competitors_.end()) {
    competitors_.push_back({.wait = wait, .times = 1});
  } else {
    known->wait.ns += wait.ns;
    ++known->times;
  }
}

void SchedulingDetail::settle(std::uint64_t runnable_ns) {
  std::uint64_t accounted = other_competitors_ns_;
  for (const CpuCompetitor& competitor : competitors_) accounted += competitor.wait.ns;
  if (accounted > runnable_ns) {
    competitors_.clear();
    other_competitors_ns_ = accounted = 0;
  }
  unknown_competitors_ns_ = runnable_ns - accounted;
}

void SchedulingDetail::add_waker(const Thread& by) {
  ++woken_;
  const auto known = std::ranges::find(wakers_, by.tid, [](const Waker& waker) { return waker.thread.tid; });
  if (known != wakers_.end()) {
    ++known->times;
  } else if (wakers_.size() < max_wakers) {
    wakers_.push_back({.thread = by, .times = 1});
  }
}

std::vector<SchedulingDetail::CpuCompetitor> SchedulingDetail::competitors() const {
  auto sorted = competitors_;
  std::ranges::sort(sorted, std::ranges::greater{}, [](const CpuCompetitor& competitor) {
    return std::tuple(competitor.wait.ns, competitor.times, competitor.wait.cpu);
  });
  return sorted;
}

std::vector<SchedulingDetail::Waker> SchedulingDetail::wakers() const {
  auto sorted = wakers_;
  std::ranges::sort(sorted, std::ranges::greater{},
                    [](const Waker& waker) { return std::pair(waker.times, waker.thread.tid); });
  return sorted;
}

void PauseDetails::lose(std::uint16_t lost_domain) {
  if (lost_domain == domain.domain || lost_domains.size() >= max_lost_domains) return;
  if (std::ranges::find(lost_domains, lost_domain) == lost_domains.end()) lost_domains.push_back(lost_domain);
}

void PauseDetails::lose(const DomainLife& in, const Loss& loss) {
  const bool meanwhile = loss.to_ns >= begin_ns && loss.from_ns <= end_ns;
  if (in.process != domain.process || in.domain == domain.domain || !meanwhile) return;
  lose(in.domain);
  for (const PauseSection& part : sections) {
    if (loss.from_ns <= part.section->end_ns()) part.section->lose(in.domain, loss);
  }
}

void OpenPause::took_part(PauseSection section) {
  auto& sections = details.sections;
  sections.push_back(std::move(section));
  if (sections.size() > PauseDetails::max_sections)
    sections.erase(std::ranges::min_element(sections, {}, &PauseSection::time_ns));
}

PauseDetails OpenPause::finish(const PhaseEnd& root, const TimeSplit& time, ThreadRole role) && {
  details.end_ns = root.end_ns;
  details.late = root.late;
  details.role = role;
  details.time = time;
  details.scheduling.settle(time.runnable);

  const std::uint64_t blocked = time.blocked();
  details.blocked.barrier = std::min(in_barriers.blocked(), blocked);
  details.blocked.section =
      std::clamp(in_sections.blocked(), details.blocked.barrier, blocked) - details.blocked.barrier;
  details.blocked.other = blocked - details.blocked.barrier - details.blocked.section;

  details.besides = time;
  details.start_wait_ns = take(details.besides, start_wait).total();
  details.finish_wait_ns = take(details.besides, finish_wait).total();
  return std::move(details);
}

}  // namespace rtev
