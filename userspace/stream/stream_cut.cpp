// SPDX-License-Identifier: MIT
#include "stream/stream_cut.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace rtev {
namespace {

/// How long after the cut events of before it may still come.
constexpr std::uint64_t late_ns = 10'000'000'000;

bool is_late(const Event& event) {
  return (event.flags & flag_late) != 0;
}

}  // namespace

bool StreamCut::cut_at(std::uint64_t time_ns, Rest rest, OnCut on_cut) {
  if (reached_ns_ >= time_ns) return false;
  time_ns_ = time_ns;
  rest_ = rest;
  on_cut_ = std::move(on_cut);
  is_past_ = false;
  return true;
}

bool StreamCut::cross(const Registry& registry) {
  sink_.advance(time_ns_, registry);
  is_past_ = on_cut_(time_ns_, registry);
  if (!is_past_) time_ns_ = 0;
  return is_past_;
}

void StreamCut::consume(const Batch& batch, const Registry& registry) {
  const auto events = batch.events();
  for (const Event& event : events)
    if (!is_late(event)) reached_ns_ = std::max(reached_ns_, event.time);
  if (time_ns_ == 0) return sink_.consume(batch, registry);
  if (is_past_) return consume_past(batch, registry);
  // Times of late events may be those of any time.
  const auto first =
      std::ranges::find_if(events, [this](const Event& event) { return event.time > time_ns_ && !is_late(event); });
  const auto before = static_cast<std::size_t>(first - events.begin());
  if (before > 0) sink_.consume(Batch(events.first(before), batch.payloads()), registry);
  if (first == events.end()) return;
  const Batch rest(events.subspan(before), batch.payloads());
  cross(registry) ? consume_past(rest, registry) : sink_.consume(rest, registry);
}

void StreamCut::consume_past(const Batch& batch, const Registry& registry) {
  kept_.clear();
  for (const Event& event : batch.events()) {
    const bool is_before = event.time <= time_ns_;
    // The tracer before has read what is late of a ring. What else happened is to be known.
    const bool is_counted = is_before && event.kind < EventKind::lifecycle;
    const bool is_user = is_user_event(event.kind);
    if (rest_ == Rest::dropped ? is_before : !(is_counted || (is_before && is_user))) kept_.push_back(event);
  }
  if (!kept_.empty()) sink_.consume(Batch(kept_, batch.payloads()), registry);
}

void StreamCut::advance(std::uint64_t time_ns, const Registry& registry) {
  reached_ns_ = std::max(reached_ns_, time_ns);
  if (time_ns_ != 0 && !is_past_ && time_ns >= time_ns_) cross(registry);
  if (is_past_ && rest_ == Rest::given && time_ns > time_ns_ + late_ns) {
    time_ns_ = 0;
    is_past_ = false;
  }
  sink_.advance(is_past_ && rest_ == Rest::dropped ? time_ns_ : time_ns, registry);
}

}  // namespace rtev
