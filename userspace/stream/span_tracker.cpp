// SPDX-License-Identifier: MIT
#include "stream/span_tracker.hpp"

#include <algorithm>

namespace rtev {
namespace {

Event begin_of(SpanTracker::Span span, std::uint64_t time) {
  return {.time = time,
          .value = 0,
          .source = 0,
          .id = span.id,
          .kind = span.user ? EventKind::user_begin : EventKind::begin,
          .flags = 0};
}

}  // namespace

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
  SpanStack& stack = found->second;
  if (stack.size() >= max_depth || open_ >= limits_.open) make_room(stack);
  const std::size_t depth = stack.size();
  if (open_ < limits_.open) {
    stack.push(begin_of(span, time));
    ++open_;
  }
  return depth;
}

/// For programs that begin spans and never end them. The outer half of the spans is forgotten: inner spans, which do
/// end, keep their durations, and the cost is amortised.
void SpanTracker::make_room(SpanStack& stack) {
  const std::size_t forgotten = (stack.size() + 1) / 2;
  stack.remove_outermost(forgotten);
  open_ -= forgotten;
}

SpanTracker::Ended SpanTracker::end(Ring ring, Span span, std::uint64_t time) {
  const auto found = stacks_.find(key_of(ring));
  if (found == stacks_.end()) return {0, std::nullopt};
  SpanStack& stack = found->second;
  const auto depth = stack.find(begin_of(span, time));
  if (!depth) return {stack.size(), std::nullopt};
  const std::uint64_t begin = stack[*depth].time;
  open_ -= stack.size() - *depth;
  stack.truncate(*depth);
  return {*depth, time >= begin ? std::optional{time - begin} : std::nullopt};
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
