// SPDX-License-Identifier: MIT
#include "analysis/thread_history.hpp"

#include <algorithm>

namespace rtev {

void ThreadHistory::add(const ThreadStretch& stretch, const CpuHistory& cpus) {
  Recent* const known = recent(stretch.pid, stretch.tid);
  if (!known) return;
  known->stretches.push_back(past_of(stretch, cpus));
  ++stretches_;
  const std::size_t most = stretches_ > most_stretches ? fewest_of_a_thread : stretches_of_a_thread;
  while (known->stretches.size() > most) {
    known->stretches.pop_front();
    --stretches_;
  }
}

void ThreadHistory::see(const SchedSwitch& change) {
  for (const Thread* const thread : {&change.prev, &change.next}) {
    if (!thread->tracked || thread->role == ThreadRole::unknown) continue;
    if (Recent* const known = recent(thread->pid, thread->tid)) known->role = thread->role;
  }
  if (change.state != LeftState::dead) return;
  const auto dead = threads_.find(change.prev.tid);
  if (dead == threads_.end()) return;
  stretches_ -= dead->second.stretches.size();
  threads_.erase(dead);
}

void ThreadHistory::forget(std::int32_t pid) {
  std::erase_if(threads_, [&](const auto& thread) {
    if (thread.second.pid != pid) return false;
    stretches_ -= thread.second.stretches.size();
    return true;
  });
}

ThreadRole ThreadHistory::role(std::int32_t tid) const {
  const auto found = threads_.find(tid);
  return found == threads_.end() ? ThreadRole::unknown : found->second.role;
}

Doing ThreadHistory::between(std::int32_t tid, std::uint64_t from_ns, std::uint64_t to_ns, const ThreadTime& time,
                             const CpuHistory& cpus) const {
  Doing doing;
  std::uint64_t told_until = from_ns;
  const auto tell = [&](const Past& past) {
    const std::uint64_t begin = std::max(past.begin_ns, told_until), end = std::min(past.end_ns, to_ns);
    if (end <= begin) return;
    doing.time.unknown += begin - told_until;
    doing.time.add(past.state, end - begin);
    told_until = end;
    if (past.state == ThreadState::runnable && std::min(past.wait.ns, end - begin) > doing.longest_wait.ns) {
      doing.longest_wait = past.wait;
      doing.longest_wait.ns = std::min(past.wait.ns, end - begin);
    }
  };
  if (const auto found = threads_.find(tid); found != threads_.end()) {
    const std::deque<Past>& stretches = found->second.stretches;
    for (auto past = std::ranges::lower_bound(stretches, from_ns, {}, &Past::end_ns); past != stretches.end(); ++past)
      tell(*past);
  }
  if (const auto lasts = time.current(tid, to_ns)) tell(past_of(*lasts, cpus));
  doing.time.unknown += to_ns - std::min(to_ns, told_until);
  return doing;
}

ThreadHistory::Past ThreadHistory::past_of(const ThreadStretch& stretch, const CpuHistory& cpus) {
  Past past{.begin_ns = stretch.begin_ns, .end_ns = stretch.end_ns, .state = stretch.state};
  if (stretch.state == ThreadState::runnable) {
    cpus.each(stretch.cpu, stretch.begin_ns, stretch.end_ns, [&](const CpuWait& wait) {
      if (wait.ns > past.wait.ns) past.wait = wait;
    });
  }
  return past;
}

ThreadHistory::Recent* ThreadHistory::recent(std::int32_t pid, std::int32_t tid) {
  const auto found = threads_.find(tid);
  if (found != threads_.end()) {
    if (found->second.pid != pid) {
      stretches_ -= found->second.stretches.size();
      found->second = Recent{.pid = pid};
    }
    return &found->second;
  }
  if (threads_.size() >= most_threads) return nullptr;
  return &threads_.try_emplace(tid, Recent{.pid = pid}).first->second;
}

}  // namespace rtev
