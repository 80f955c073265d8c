// SPDX-License-Identifier: MIT
#include "analysis/sample_history.hpp"

#include <algorithm>
#include <functional>
#include <map>

namespace rtev {
namespace {

/// What each thread keeps when all together have too many.
constexpr std::size_t min_samples_per_thread = 16;

}  // namespace

void SampleHistory::add(const Event& event, const Batch& batch, const Registry& registry) {
  if (event.kind == EventKind::sample) {
    if (const auto record = batch.payload_as<Sample>(event)) sample(event, *record);
  } else if (recent_.empty()) {
    return;
  } else if (event.kind == EventKind::sched_switch) {
    const auto change = batch.payload_as<SchedSwitch>(event);
    if (change && change->state == LeftState::dead) forget_thread(change->prev.tid);
  } else if (event.kind == EventKind::process && event.id == static_cast<std::uint16_t>(ProcessAction::exit)) {
    if (const auto record = batch.payload_as<ProcessRecord>(event))
      forget_process(registry.process(record->process).pid);
  }
}

void SampleHistory::sample(const Event& event, const Sample& sample) {
  const auto kind = static_cast<SampleKind>(event.id);
  if (kind != SampleKind::on_cpu && kind != SampleKind::off_cpu) return;
  if (recent_.size() >= max_threads && !recent_.contains(sample.tid)) return;
  Recent& known = recent_[sample.tid];
  if (known.pid != sample.pid) {
    samples_ -= known.samples.size();
    known = {.pid = sample.pid};
  }
  known.samples.push_back({.time_ns = event.time, .ns = sample.weight, .stack = sample.stack, .kind = kind});
  ++samples_;
  const std::size_t kept = samples_ > max_samples ? min_samples_per_thread : samples_per_thread;
  while (known.samples.size() > kept) {
    known.samples.pop_front();
    --samples_;
  }
}

void SampleHistory::forget_thread(std::int32_t tid) {
  const auto found = recent_.find(tid);
  if (found == recent_.end()) return;
  samples_ -= found->second.samples.size();
  recent_.erase(found);
}

void SampleHistory::forget_process(std::int32_t pid) {
  std::erase_if(recent_, [&](const auto& thread) {
    if (thread.second.pid != pid) return false;
    samples_ -= thread.second.samples.size();
    return true;
  });
}

std::vector<SeenStack> SampleHistory::between(std::int32_t tid, std::uint64_t from_ns, std::uint64_t to_ns) const {
  std::vector<SeenStack> seen;
  const auto found = recent_.find(tid);
  if (found == recent_.end()) return seen;
  const std::deque<Past>& samples = found->second.samples;
  for (auto past = std::ranges::lower_bound(samples, from_ns, {}, &Past::time_ns); past != samples.end(); ++past) {
    // The time of a sleep is its end.
    const bool sleeps = past->kind == SampleKind::off_cpu;
    const std::uint64_t begin_ns = sleeps ? past->time_ns - std::min(past->time_ns, past->ns) : past->time_ns;
    if (begin_ns > to_ns) {
      if (sleeps) continue;
      break;
    }
    const std::uint64_t slept_ns = std::min(past->time_ns, to_ns) - std::max(begin_ns, from_ns);
    auto same = std::ranges::find_if(
        seen, [&](const SeenStack& one) { return one.stack == past->stack && one.kind == past->kind; });
    if (same == seen.end()) same = seen.insert(same, {.stack = past->stack, .kind = past->kind});
    ++same->samples;
    same->ns += sleeps ? slept_ns : past->ns;
  }
  std::ranges::stable_sort(seen, std::greater{}, &SeenStack::ns);
  std::map<SampleKind, std::uint64_t> samples_of;
  for (const SeenStack& one : seen) samples_of[one.kind] += one.samples;
  std::map<SampleKind, std::size_t> kept;
  std::erase_if(seen, [&](const SeenStack& one) { return ++kept[one.kind] > max_stacks; });
  for (SeenStack& one : seen) one.of_samples = samples_of[one.kind];
  return seen;
}

}  // namespace rtev
