// SPDX-License-Identifier: MIT
#include "analysis/latency/domain_time.hpp"

#include <algorithm>
#include <ranges>

namespace rtev {

void DomainTime::add(const Event& event, const Batch& batch, const Registry& registry) {
  const std::uint64_t version = threads_.writers_version();
  threads_.add(event, batch, registry);
  if (event.kind == EventKind::sched_switch) {
    const auto change = batch.payload_as<SchedSwitch>(event);
    if (!change) return;
    switches_seen_ = true;
    if (threads_.writers_version() == version) return;
    change_threads(change->prev.pid, event.time);
    if (change->next.pid != change->prev.pid) change_threads(change->next.pid, event.time);
  } else if (is_sched_loss(event)) {
    const auto loss = batch.payload_as<Loss>(event);
    if (!loss) return;
    for (const auto& [pid, meters] : running_) change_threads(pid, loss->from_ns);
  } else if (event.kind == EventKind::process && event.id == static_cast<std::uint16_t>(ProcessAction::exit)) {
    if (const auto record = batch.payload_as<ProcessRecord>(event))
      change_threads(registry.process(record->process).pid, event.time);
  }
}

DomainTime::Meter DomainTime::start(std::int32_t pid, std::uint16_t domain, std::uint64_t time_ns) {
  auto& meters = running_[pid];
  if (meters.size() >= max_running) return {.pid = pid, .start_ns = time_ns};
  const auto tid = threads_.writer_of(pid, domain);
  meters.emplace(++last_number_, Running{.domain = domain, .tid = tid, .since = snapshot(tid, time_ns), .before = {}});
  return {.pid = pid, .number = last_number_, .start_ns = time_ns};
}

TimeSplit DomainTime::stop(Meter meter, std::uint64_t time_ns) {
  const std::uint64_t duration_ns = time_ns - std::min(time_ns, meter.start_ns);
  if (meter.number == 0) return {.unknown = duration_ns};
  const auto process = running_.find(meter.pid);
  if (process == running_.end()) return {};
  const auto found = process->second.find(meter.number);
  if (found == process->second.end()) return {};
  const Running& running = found->second;
  TimeSplit split = running.before;
  split += ThreadTracker::between(running.since, snapshot(running.tid, time_ns));
  if (split.total() != duration_ns) split = {.unknown = duration_ns};
  process->second.erase(found);
  if (process->second.empty()) running_.erase(process);
  return split;
}

std::size_t DomainTime::running() const {
  std::size_t count = 0;
  for (const auto& [pid, meters] : running_) count += meters.size();
  return count;
}

/// Of no thread if the thread is unknown: the time between two such snapshots is unknown.
ThreadTracker::Snapshot DomainTime::snapshot(std::optional<std::int32_t> tid, std::uint64_t time_ns) {
  if (tid) return threads_.at(*tid, time_ns);
  return {.time_ns = time_ns};
}

void DomainTime::change_threads(std::int32_t pid, std::uint64_t time_ns) {
  const auto process = running_.find(pid);
  if (process == running_.end()) return;
  for (Running& meter : process->second | std::views::values) {
    const auto tid = threads_.writer_of(pid, meter.domain);
    if (tid == meter.tid) continue;
    const std::uint64_t now = std::max(time_ns, meter.since.time_ns);  // the switch may be late
    meter.before += ThreadTracker::between(meter.since, snapshot(meter.tid, now));
    meter.tid = tid;
    meter.since = snapshot(tid, now);
  }
}

}  // namespace rtev
