// SPDX-License-Identifier: MIT
#include "stream/span_tracker.hpp"

#include <algorithm>

namespace rtev {

std::size_t SpanTracker::depth(Ring ring) const {
  const auto found = stacks_.find(key_of(ring));
  return found == stacks_.end() ? 0 : found->second.size();
}

std::size_t SpanTracker::begin(Ring ring, Span span, std::uint64_t time) {
  auto found = stacks_.find(key_of(ring));
  if (found == stacks_.end()) {
    if (stacks_.size() >= limits_.rings) return 0;
    found = stacks_.try_emplace(key_of(ring)).first;
  }
  Stack& stack = found->second;
  if (stack.size() >= max_depth || open_ >= limits_.open) make_room(stack);
  const std::size_t depth = stack.size();
  if (open_ < limits_.open) {
    stack.push_back({time, span});
    ++open_;
  }
  return depth;
}

/// For programs that begin spans and never end them. The outer half of the spans is forgotten: inner spans, which do
/// end, keep their durations, and the cost is amortised.
void SpanTracker::make_room(Stack& stack) {
  const std::size_t forgotten = (stack.size() + 1) / 2;
  stack.erase(stack.begin(), stack.begin() + static_cast<std::ptrdiff_t>(forgotten));
  open_ -= forgotten;
}

SpanTracker::Ended SpanTracker::end(Ring ring, Span span, std::uint64_t time) {
  const auto found = stacks_.find(key_of(ring));
  if (found == stacks_.end()) return {0, std::nullopt};
  Stack& stack = found->second;
  const auto match = std::ranges::find(stack.rbegin(), stack.rend(), span, &Open::span);
  if (match == stack.rend()) return {stack.size(), std::nullopt};
  const auto ended = std::prev(match.base());
  const std::uint64_t begin = ended->begin;
  const auto depth = static_cast<std::size_t>(ended - stack.begin());
  open_ -= stack.size() - depth;
  stack.erase(ended, stack.end());
  return {depth, time >= begin ? std::optional{time - begin} : std::nullopt};
}

void SpanTracker::reset(Ring ring) {
  const auto found = stacks_.find(key_of(ring));
  if (found == stacks_.end()) return;
  open_ -= found->second.size();
  stacks_.erase(found);
}

void SpanTracker::forget(ProcessIndex process) {
  const auto first = stacks_.lower_bound(key_of({process, 0}));
  auto last = first;
  for (; last != stacks_.end() && last->first >> 16 == process; ++last) open_ -= last->second.size();
  stacks_.erase(first, last);
}

void SpanTracker::forget_ended(const Registry& registry) {
  if (stacks_.size() < sweep_at_) return;
  std::erase_if(stacks_, [&](const auto& stack) {
    const bool ended = registry.process(static_cast<ProcessIndex>(stack.first >> 16)).ended;
    if (ended) open_ -= stack.second.size();
    return ended;
  });
  sweep_at_ = std::max(sweep_at_least, stacks_.size() * 2);
}

}  // namespace rtev
