// SPDX-License-Identifier: MIT
#include "analysis/profile/slow_samples.hpp"

#include <algorithm>
#include <ranges>

namespace rtev {

void SlowSamples::decide(const Waiting& sample) {
  if (!sample.inside && sample.unknown) {
    ++undecided_;
    return;
  }
  SampleKey key = sample.key;
  key.side = sample.inside ? SampleSide::inside : SampleSide::others;
  fold_.add(key, sample.value);
}

/// Newest first: what came before the span is not looked at.
void SlowSamples::mark(Queue& queue, std::uint64_t begin_ns, std::uint64_t end_ns, bool Waiting::* as) {
  for (Waiting& sample : queue | std::views::reverse) {
    if (sample.time_ns < begin_ns) return;
    if (sample.time_ns <= end_ns) sample.*as = true;
  }
}

/// Decides on the samples that are in none of the open spans.
void SlowSamples::settle(Queue& queue, std::span<const std::uint64_t> begins) {
  const std::uint64_t oldest = begins.empty() ? UINT64_MAX : std::ranges::min(begins);
  while (!queue.empty() && (queue.front().inside || begins.empty() || queue.front().time_ns < oldest)) {
    decide(queue.front());
    queue.pop_front();
    --waiting_count_;
  }
}

void SlowSamples::add(const SlowScope& scope, const SampleKey& key, const SampleValue& value, std::uint64_t time_ns,
                      std::span<const std::uint64_t> begins) {
  Waiting sample{.key = key, .value = value, .time_ns = time_ns};
  for (const std::uint64_t begin_ns : begins) {
    if (time_ns < begin_ns || time_ns - begin_ns < min_ns_) continue;
    sample.inside = true;
    if (const auto queue = waiting_.find(scope); queue != waiting_.end())
      mark(queue->second, begin_ns, time_ns, &Waiting::inside);
  }
  if (sample.inside || begins.empty()) {
    decide(sample);
  } else if (waiting_count_ >= max_waiting_) {
    ++undecided_;
  } else {
    waiting_[scope].push_back(sample);
    ++waiting_count_;
  }
  const auto queue = waiting_.find(scope);
  if (queue == waiting_.end()) return;
  settle(queue->second, begins);
  if (queue->second.empty()) waiting_.erase(queue);
}

void SlowSamples::end(const SlowScope& scope, std::uint64_t begin_ns, std::uint64_t end_ns, bool is_known,
                      std::span<const std::uint64_t> begins) {
  const auto queue = waiting_.find(scope);
  if (queue == waiting_.end()) return;
  const std::uint64_t length_ns = end_ns - std::min(begin_ns, end_ns);
  if (length_ns >= min_ns_) {
    mark(queue->second, begin_ns, end_ns, &Waiting::inside);
  } else if (!is_known) {
    mark(queue->second, begin_ns, end_ns, &Waiting::unknown);
  }
  settle(queue->second, begins);
  if (queue->second.empty()) waiting_.erase(queue);
}

}  // namespace rtev
