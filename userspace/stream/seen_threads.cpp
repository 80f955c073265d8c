// SPDX-License-Identifier: MIT
#include "stream/seen_threads.hpp"

#include <algorithm>

#include "stream/registry.hpp"

namespace rtev {

void SeenThreads::consume(const Batch& batch, const Registry& registry) {
  for (const Event& event : batch.events()) {
    if (event.kind == EventKind::sched_switch) {
      const auto change = batch.payload_as<SchedSwitch>(event);
      if (!change) continue;
      see(change->prev);
      see(change->next);
    } else if (event.kind == EventKind::wakeup) {
      if (const auto wakeup = batch.payload_as<Wakeup>(event)) see(wakeup->woken);
    } else if (event.kind < EventKind::lost) {
      const std::int32_t domain = Source::unpack(event.source).domain;
      domains_.insert(domain);
      // Without scheduler events domain 0 is taken to run on the main thread.
      if (const ProcessInfo* const process = domain == 0 ? registry.process_of(event) : nullptr)
        see_tid(process->pid, true);
    }
  }
  sink_.consume(batch, registry);
}

void SeenThreads::see(const Thread& thread) {
  see_tid(thread.tid, thread.tracked);
}

void SeenThreads::see_tid(std::int32_t tid, bool is_listed) {
  if (std::ranges::find(wanted_.tids, tid) != wanted_.tids.end()) matched_tids_.insert(tid);
  if (is_listed && tids_.size() < max_tids) tids_.insert(tid);
}

ThreadSelection SeenThreads::unmatched() const {
  ThreadSelection unmatched;
  for (const std::int32_t domain : wanted_.domains)
    if (!domains_.contains(domain)) unmatched.domains.push_back(domain);
  for (const std::int32_t tid : wanted_.tids)
    if (!matched_tids_.contains(tid)) unmatched.tids.push_back(tid);
  return unmatched;
}

}  // namespace rtev
