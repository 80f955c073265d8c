// SPDX-License-Identifier: MIT
#include "analysis/pauses/thread_history.hpp"

#include <algorithm>

namespace rtev {

void ThreadHistory::add(const ThreadInterval& interval) {
  Recent* const known = recent(interval.pid, interval.tid);
  if (!known) return;
  known->intervals.push_back(past_of(interval));
  ++intervals_;
  const std::size_t kept = intervals_ > max_intervals ? min_intervals_per_thread : intervals_per_thread;
  while (known->intervals.size() > kept) {
    known->intervals.pop_front();
    --intervals_;
  }
}

void ThreadHistory::forget_thread(std::int32_t tid) {
  const auto found = recent_.find(tid);
  if (found == recent_.end()) return;
  intervals_ -= found->second.intervals.size();
  recent_.erase(found);
}

void ThreadHistory::forget_process(std::int32_t pid) {
  std::erase_if(recent_, [&](const auto& thread) {
    if (thread.second.pid != pid) return false;
    intervals_ -= thread.second.intervals.size();
    return true;
  });
}

ThreadActivity ThreadHistory::between(std::int32_t tid, std::uint64_t from_ns, std::uint64_t to_ns) const {
  ThreadActivity activity;
  std::uint64_t added_until = from_ns;
  const auto add_part = [&](const Past& past) {
    const std::uint64_t begin = std::max(past.begin_ns, added_until), end = std::min(past.end_ns, to_ns);
    if (end <= begin) return;
    activity.time.unknown += begin - added_until;
    activity.time.add(past.state, end - begin);
    added_until = end;
    if (past.state == ThreadState::runnable && std::min(past.wait.ns, end - begin) > activity.longest_wait.ns) {
      activity.longest_wait = past.wait;
      activity.longest_wait.ns = std::min(past.wait.ns, end - begin);
    }
  };
  if (const auto found = recent_.find(tid); found != recent_.end()) {
    const std::deque<Past>& intervals = found->second.intervals;
    for (auto past = std::ranges::lower_bound(intervals, from_ns, {}, &Past::end_ns); past != intervals.end(); ++past)
      add_part(*past);
  }
  if (const auto present = threads_.current(tid, to_ns)) add_part(past_of(*present));
  activity.time.unknown += to_ns - std::min(to_ns, added_until);
  return activity;
}

ThreadHistory::Past ThreadHistory::past_of(const ThreadInterval& interval) const {
  Past past{.begin_ns = interval.begin_ns, .end_ns = interval.end_ns, .state = interval.state};
  if (interval.state == ThreadState::runnable) {
    cpus_.each(interval.cpu, interval.begin_ns, interval.end_ns, [&](const CpuWait& wait) {
      if (wait.ns > past.wait.ns) past.wait = wait;
    });
  }
  return past;
}

ThreadHistory::Recent* ThreadHistory::recent(std::int32_t pid, std::int32_t tid) {
  const auto found = recent_.find(tid);
  if (found != recent_.end()) {
    if (found->second.pid != pid) {
      intervals_ -= found->second.intervals.size();
      found->second = Recent{.pid = pid};
    }
    return &found->second;
  }
  if (recent_.size() >= max_threads) return nullptr;
  return &recent_.try_emplace(tid, Recent{.pid = pid}).first->second;
}

}  // namespace rtev
