// SPDX-License-Identifier: MIT
#include "analysis/pauses/thread_history.hpp"

#include <algorithm>
#include <ranges>

namespace rtev {
namespace {

/// The index of the first value in order whose `time` is not before this; the number of values if there is none.
template <typename Value>
std::size_t first_from(const RingBuffer<Value>& values, std::uint64_t time_ns, std::uint64_t Value::* time) {
  const auto indexes = std::views::iota(std::size_t{0}, values.size());
  return *std::ranges::lower_bound(indexes, time_ns, {}, [&](std::size_t index) { return values[index].*time; });
}

}  // namespace

void ThreadHistory::add(const ThreadInterval& interval) {
  History* const history = history_of(interval);
  if (history == nullptr) return;
  const Past past = past_of(interval);
  const std::size_t kept = intervals_ >= max_intervals ? min_intervals_per_thread : intervals_per_thread;
  while (history->intervals.size() >= kept) {
    history->drop_oldest();
    --intervals_;
  }
  history->intervals.push_back(past);
  if (past.keeps_wait()) history->waits.push_back({.begin_ns = past.begin_ns, .wait = wait_of(past)});
  ++intervals_;
}

void ThreadHistory::History::drop_oldest() {
  if (intervals.front().keeps_wait()) waits.pop_front();
  intervals.pop_front();
}

void ThreadHistory::forget_thread(std::int32_t tid) {
  const auto found = histories_.find(tid);
  if (found == histories_.end()) return;
  intervals_ -= found->second.intervals.size();
  recent_.forget(tid);
  histories_.erase(found);
}

void ThreadHistory::forget_process(std::int32_t pid) {
  std::erase_if(histories_, [&](const auto& thread) {
    if (thread.second.pid != pid) return false;
    intervals_ -= thread.second.intervals.size();
    recent_.forget(thread.first);
    return true;
  });
}

ThreadActivity ThreadHistory::between(std::int32_t tid, std::uint64_t from_ns, std::uint64_t to_ns) const {
  ThreadActivity activity;
  std::uint64_t added_until = from_ns;
  const auto add_part = [&](const Past& past, const RingBuffer<KeptWait>& waits) {
    const std::uint64_t begin = std::max(past.begin_ns, added_until), end = std::min(past.end_ns, to_ns);
    if (end <= begin) return;
    activity.time.unknown += begin - added_until;
    activity.time.add(past.state, end - begin);
    added_until = end;
    if (past.state != ThreadState::runnable || end - begin <= activity.longest_wait.ns) return;
    const std::size_t kept = past.keeps_wait() ? first_from(waits, past.begin_ns, &KeptWait::begin_ns) : waits.size();
    CpuWait wait = kept < waits.size() ? waits[kept].wait : wait_of(past);
    wait.ns = std::min(wait.ns, end - begin);
    if (wait.ns > activity.longest_wait.ns) activity.longest_wait = wait;
  };
  if (const auto found = histories_.find(tid); found != histories_.end()) {
    const auto& [pid, intervals, waits] = found->second;
    for (std::size_t i = first_from(intervals, from_ns, &Past::end_ns); i < intervals.size(); ++i)
      add_part(intervals[i], waits);
  }
  if (const auto present = threads_.current(tid, to_ns)) add_part(past_of(*present), {});
  activity.time.unknown += to_ns - std::min(to_ns, added_until);
  return activity;
}

ThreadHistory::Past ThreadHistory::past_of(const ThreadInterval& interval) {
  return {.begin_ns = interval.begin_ns, .end_ns = interval.end_ns, .cpu = interval.cpu, .state = interval.state};
}

CpuWait ThreadHistory::wait_of(const Past& past) const {
  CpuWait longest;
  cpus_.each(past.cpu, past.begin_ns, past.end_ns, [&](const CpuWait& wait) {
    if (wait.ns > longest.ns) longest = wait;
  });
  return longest;
}

ThreadHistory::History* ThreadHistory::history_of(const ThreadInterval& interval) {
  History* known = recent_.find(histories_, interval.tid);
  if (known == nullptr) {
    if (histories_.size() >= max_threads) return nullptr;
    known = &histories_[interval.tid];
  }
  if (known->pid != interval.pid) {
    intervals_ -= known->intervals.size();
    *known = {.pid = interval.pid};
  }
  return known;
}

}  // namespace rtev
