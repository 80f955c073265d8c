// SPDX-License-Identifier: MIT
#include "stream/thread_filter.hpp"

namespace rtev {

void ThreadFilter::consume(const Batch& batch, const Registry& registry) {
  accepted_.clear();
  for (const Event& event : batch.events()) {
    threads_.add(event, batch, registry);
    if (accepts(event, batch, registry)) accepted_.push_back(event);
  }
  hand_on(batch.payloads(), registry);
}

void ThreadFilter::summary(const RunSummary& summary, const Registry& registry) {
  sink_.summary(counted(summary), registry);
}

bool ThreadFilter::accepts(const Event& event, const Batch& batch, const Registry& registry) const {
  switch (event.kind) {
    case EventKind::process:
    case EventKind::lost:
      return true;
    case EventKind::sched_switch: {
      const auto change = batch.payload_as<SchedSwitch>(event);
      return change && (accepts(change->prev) || accepts(change->next));
    }
    case EventKind::wakeup: {
      const auto wakeup = batch.payload_as<Wakeup>(event);
      return wakeup && accepts(wakeup->woken);
    }
    default: {
      const ProcessInfo* const process = registry.process_of(event);
      const std::uint16_t domain = Source::unpack(event.source).domain;
      const auto writer = process ? threads_.writer_of(process->pid, domain) : std::nullopt;
      return selection_.accepts(domain, writer.value_or(0));
    }
  }
}

}  // namespace rtev
