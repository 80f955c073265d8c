// SPDX-License-Identifier: MIT
#include "stream/selection.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace rtev {

void Selection::header(const RunHeader& header) {
  if (options_.duration) end_ns_ = header.start_ns + static_cast<std::uint64_t>(options_.duration->count());
  sink_.header(header);
}

void Selection::consume(const Batch& batch, const Registry& registry) {
  accepted_.clear();
  payloads_.clear();
  for (const Event& event : batch.events()) {
    if (event.time > end_ns_ || !accepts(event, batch, registry)) continue;
    accepted_.push_back(event);
    if (event.kind == EventKind::sched_switch) untrack_others(event, batch);
  }
  counts_.add(accepted_);
  if (!accepted_.empty())
    sink_.consume(Batch(accepted_, payloads_.empty() ? batch.payloads() : std::span<const std::byte>(payloads_)),
                  registry);
}

/// Not all switches of an unselected thread are handed on, so that it must not count as tracked.
void Selection::untrack_others(const Event& event, const Batch& batch) {
  if ((options_.pids.empty() && options_.name_globs.empty()) || options_.all_scheduling || sees_all_) return;
  auto change = batch.payload_as<SchedSwitch>(event);
  bool changed = false;
  for (Thread* const thread : {&change->prev, &change->next}) {
    if (!thread->tracked || selected_.contains(thread->pid)) continue;
    thread->tracked = false;
    changed = true;
  }
  if (!changed) return;
  if (payloads_.empty()) payloads_.assign(batch.payloads().begin(), batch.payloads().end());
  std::memcpy(payloads_.data() + (event.value >> 32), &*change, sizeof *change);
}

bool Selection::accepts(const Event& event, const Batch& batch, const Registry& registry) {
  if (options_.pids.empty() && options_.name_globs.empty()) return true;
  switch (event.kind) {
    case EventKind::process: {
      const auto record = batch.payload_as<ProcessRecord>(event);
      return record && accepts(registry.process(record->process));
    }
    case EventKind::sched_switch: {
      const auto change = batch.payload_as<SchedSwitch>(event);
      return change && accepts(*change);
    }
    case EventKind::wakeup: {
      const auto wakeup = batch.payload_as<Wakeup>(event);
      return wakeup && (options_.all_scheduling || sees_all_ || selected_.contains(wakeup->woken.pid));
    }
    default: {
      // What the kernel dropped may have been of any thread.
      if (event.kind == EventKind::lost && Source::unpack(event.source).slot == 0) return true;
      const ProcessInfo* const facts = registry.process_of(event);
      return facts != nullptr && accepts(*facts);
    }
  }
}

bool Selection::accepts(const ProcessInfo& facts) {
  const auto matches = [&](const std::string& glob) { return ::fnmatch(glob.c_str(), facts.comm.c_str(), 0) == 0; };
  const bool selected = (options_.pids.empty() || std::ranges::find(options_.pids, facts.pid) != options_.pids.end()) &&
                        (options_.name_globs.empty() || std::ranges::any_of(options_.name_globs, matches));
  // A pid may come back as another program's.
  if (selected)
    selected_.insert(facts.pid);
  else
    selected_.erase(facts.pid);
  return selected;
}

bool Selection::accepts(const SchedSwitch& change) {
  sees_all_ = sees_all_ || (!change.prev.tracked && !change.next.tracked);
  return options_.all_scheduling || sees_all_ || selected_.contains(change.prev.pid) ||
         selected_.contains(change.next.pid);
}

void Selection::summary(const RunSummary& summary, const Registry& registry) {
  const bool all = options_.pids.empty() && options_.name_globs.empty() && !options_.duration;
  RunSummary selected = all ? summary : counts_.of(summary);
  selected.end_ns = std::min(selected.end_ns, end_ns_);
  sink_.summary(selected, registry);
}

}  // namespace rtev
