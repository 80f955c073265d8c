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
  for (const auto state : {&TimeSplit::on_cpu, &TimeSplit::runnable, &TimeSplit::sleeping, &TimeSplit::uninterruptible,
                           &TimeSplit::stopped, &TimeSplit::unknown}) {
    taken.*state = std::min(whole.*state, part.*state);
    whole.*state -= taken.*state;
  }
  return taken;
}

bool is_blocked(ThreadState state) {
  return state == ThreadState::sleeping || state == ThreadState::uninterruptible || state == ThreadState::stopped;
}

}  // namespace

void SchedulingDetail::add(const ThreadStretch& stretch, std::uint64_t from_ns, std::uint64_t to_ns,
                           const CpuHistory& cpus) {
  const std::uint64_t begin = std::max(stretch.begin_ns, from_ns), end = std::min(stretch.end_ns, to_ns);
  if (end <= begin) return;
  if (stretch.state == ThreadState::on_cpu) {
    if (last_cpu_ >= 0 && stretch.cpu != last_cpu_) ++migrations_;
    last_cpu_ = stretch.cpu;
  } else if (stretch.state == ThreadState::runnable) {
    const bool began_here = stretch.begin_ns >= from_ns;
    if (stretch.taken_by && began_here) ++preempted_;
    if (stretch.woken_by && began_here) add_waker(*stretch.woken_by);
    const std::uint64_t told_from = std::max(begin, stretch.told_from_ns);
    if (told_from < end) cpus.each(stretch.cpu, told_from, end, [this](const CpuWait& wait) { add_wait(wait); });
  } else if (is_blocked(stretch.state)) {
    ++blocked_;
    longest_block_ns_ = std::max(longest_block_ns_, end - begin);
  }
}

void SchedulingDetail::add_wait(const CpuWait& wait) {
  const auto same = [&](const Rival& rival) {
    return rival.wait.cpu == wait.cpu && rival.wait.had == wait.had &&
           rival.wait.by.has_value() == wait.by.has_value() && (!wait.by || rival.wait.by->tid == wait.by->tid);
  };
  auto known = std::ranges::find_if(rivals_, same);
  if (known == rivals_.end() && rivals_.size() >= most_rivals) {
    // The one that matters least makes room.
    known = std::ranges::min_element(rivals_, {}, [](const Rival& rival) { return rival.wait.ns; });
    if (known->wait.ns >= wait.ns) {
      other_rivals_ns_ += wait.ns;
      return;
    }
    other_rivals_ns_ += known->wait.ns;
    *known = {.wait = wait, .times = 1};
  } else if (known == rivals_.end()) {
    rivals_.push_back({.wait = wait, .times = 1});
  } else {
    known->wait.ns += wait.ns;
    ++known->times;
  }
}

void SchedulingDetail::settle(std::uint64_t runnable_ns) {
  std::uint64_t told = other_rivals_ns_;
  for (const Rival& rival : rivals_) told += rival.wait.ns;
  if (told > runnable_ns) {
    rivals_.clear();
    other_rivals_ns_ = told = 0;
  }
  unknown_rivals_ns_ = runnable_ns - told;
}

void SchedulingDetail::add_waker(const Thread& by) {
  ++woken_;
  const auto known = std::ranges::find(wakers_, by.tid, [](const Waker& waker) { return waker.thread.tid; });
  if (known != wakers_.end()) {
    ++known->times;
  } else if (wakers_.size() < most_wakers) {
    wakers_.push_back({.thread = by, .times = 1});
  }
}

std::vector<SchedulingDetail::Rival> SchedulingDetail::rivals() const {
  auto sorted = rivals_;
  std::ranges::sort(sorted, std::ranges::greater{},
                    [](const Rival& rival) { return std::tuple(rival.wait.ns, rival.times, rival.wait.cpu); });
  return sorted;
}

std::vector<SchedulingDetail::Waker> SchedulingDetail::wakers() const {
  auto sorted = wakers_;
  std::ranges::sort(sorted, std::ranges::greater{},
                    [](const Waker& waker) { return std::pair(waker.times, waker.thread.tid); });
  return sorted;
}

void PauseAnatomy::lose(std::uint16_t lost_domain) {
  if (lost_domain == domain.domain || lost_domains.size() >= most_lost_domains) return;
  if (std::ranges::find(lost_domains, lost_domain) == lost_domains.end()) lost_domains.push_back(lost_domain);
}

OpenPause::OpenPause(const DomainLife& domain, const PhaseBegin& root, std::int32_t tid,
                     const ThreadTime::Snapshot& begin)
    : begin_(begin) {
  anatomy_.domain = domain;
  anatomy_.root = root.phase;
  anatomy_.begin_ns = root.time_ns;
  anatomy_.tid = tid;
}

void OpenPause::took_part(PauseSection section) {
  auto& sections = anatomy_.sections;
  sections.push_back(std::move(section));
  if (sections.size() > PauseAnatomy::most_sections)
    sections.erase(std::ranges::min_element(sections, {}, &PauseSection::time_ns));
}

PauseAnatomy OpenPause::finish(const PhaseEnd& root, const TimeSplit& time, ThreadRole role) && {
  anatomy_.end_ns = root.end_ns;
  anatomy_.late = root.late;
  anatomy_.role = role;
  anatomy_.phases.close(root.end_ns);
  anatomy_.time = time;
  anatomy_.scheduling.settle(time.runnable);

  const std::uint64_t blocked = time.blocked();
  anatomy_.blocked.barrier = std::min(in_barriers_.blocked(), blocked);
  anatomy_.blocked.section =
      std::clamp(in_sections_.blocked(), anatomy_.blocked.barrier, blocked) - anatomy_.blocked.barrier;
  anatomy_.blocked.other = blocked - anatomy_.blocked.barrier - anatomy_.blocked.section;

  anatomy_.besides = time;
  anatomy_.start_wait_ns = take(anatomy_.besides, start_wait_).total();
  anatomy_.finish_wait_ns = take(anatomy_.besides, finish_wait_).total();
  return std::move(anatomy_);
}

}  // namespace rtev
