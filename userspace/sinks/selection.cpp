// SPDX-License-Identifier: MIT
#include "sinks/selection.hpp"

#include <fnmatch.h>

#include <algorithm>

namespace rtev {

void Selection::header(const RunHeader& header) {
  if (options_.duration) end_ns_ = header.start_ns + static_cast<std::uint64_t>(options_.duration->count());
  sink_.header(header);
}

void Selection::consume(const Batch& batch, const Registry& registry) {
  accepted_.clear();
  for (const Event& event : batch.events()) {
    if (event.time <= end_ns_ && accepts(event, batch, registry)) accepted_.push_back(event);
  }
  if (!accepted_.empty()) sink_.consume(Batch(accepted_, batch.payloads()), registry);
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
      return change && (selected_.contains(change->prev.pid) || selected_.contains(change->next.pid));
    }
    case EventKind::wakeup: {
      const auto wakeup = batch.payload_as<Wakeup>(event);
      return wakeup && selected_.contains(wakeup->woken.pid);
    }
    default: {
      const ProcessFacts* const facts = registry.process_of(event);
      return facts != nullptr && accepts(*facts);
    }
  }
}

bool Selection::accepts(const ProcessFacts& facts) {
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

void Selection::summary(const RunSummary& summary, const Registry& registry) {
  RunSummary selected = summary;
  selected.end_ns = std::min(selected.end_ns, end_ns_);
  sink_.summary(selected, registry);
}

}  // namespace rtev
