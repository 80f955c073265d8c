// SPDX-License-Identifier: MIT
#include "session/live/stream_output.hpp"

#include <algorithm>
#include <string>

#include "base/clock.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t flush_interval_ns = 20'000'000;

/// How long deliver() may take. Events of many domains take ten times as long to sort as to read.
constexpr std::uint64_t delivery_ns = 10'000'000;

/// One batch in `measured_batches` is measured. A measurement of an owner ends after `min_measured_events`, and changes
/// the average by its weight.
constexpr std::uint64_t measured_batches = 16, min_measured_events = 256;
constexpr double measurement_weight = 0.25;

}  // namespace

void StreamOutput::deliver(std::uint64_t watermark) {
  // More than was wanted is delivered if too much is staged; later events may still come then.
  const std::uint64_t delivered_until = std::min(watermark, consume(watermark, monotonic_ns() + delivery_ns));
  has_backlog_ = delivered_until < watermark;
  sink_.advance(delivered_until, registry_);
  forget_ended(delivered_until);
}

void StreamOutput::deliver_all(std::uint64_t deadline_ns) {
  consume(forever, deadline_ns);
  unwritten_ = timeline_.staged_events();
  forget_ended(forever);
}

std::uint64_t StreamOutput::consume(std::uint64_t watermark, std::uint64_t deadline_ns) {
  return timeline_.deliver(
      watermark,
      [this](const Batch& batch) {
        for (const Event& event : batch.events()) ++events_[static_cast<std::size_t>(event.kind)];
        if (++batches_ % measured_batches == 0)
          measure(batch);
        else
          sink_.consume(batch, registry_);
      },
      deadline_ns);
}

/// Hands on the batch in parts that have one owner each, and measures how long each part takes.
void StreamOutput::measure(const Batch& batch) {
  for (auto rest = batch.events(); !rest.empty();) {
    const std::uint32_t source = rest.front().source, owner = timeline_.owner(source);
    const auto end = std::ranges::find_if(
        rest, [&](const Event& event) { return event.source != source && timeline_.owner(event.source) != owner; });
    const auto count = static_cast<std::size_t>(end - rest.begin());
    const std::uint64_t begin_ns = monotonic_ns();
    sink_.consume(Batch(rest.first(count), batch.payloads()), registry_);
    Cost& cost = costs_[owner];
    cost.ns += monotonic_ns() - begin_ns;
    cost.events += count;
    if (cost.events >= min_measured_events) {
      const double event_ns = static_cast<double>(cost.ns) / static_cast<double>(cost.events);
      cost = {.event_ns = cost.event_ns + measurement_weight * (event_ns - cost.event_ns)};
    }
    rest = rest.subspan(count);
  }
}

double StreamOutput::event_ns(std::uint32_t owner) const {
  const auto known = costs_.find(owner);
  return (known == costs_.end() ? Cost{} : known->second).event_ns;
}

std::uint64_t StreamOutput::staged_ns(std::uint32_t owner) const {
  return static_cast<std::uint64_t>(static_cast<double>(timeline_.staged_events(owner)) * event_ns(owner));
}

std::uint64_t StreamOutput::room(std::uint32_t owner, std::uint64_t max_ns) const {
  const auto events = static_cast<std::uint64_t>(static_cast<double>(max_ns) / std::max(event_ns(owner), 1.0));
  return events - std::min<std::uint64_t>(events, timeline_.staged_events(owner));
}

void StreamOutput::forget_ended(std::uint64_t watermark) {
  std::erase_if(ended_, [&](const EndedImage& image) {
    if (image.time_ns > watermark) return false;
    for (const std::uint32_t slot : image.slots) {
      const RingInfo* const ring = registry_.ring(slot);
      timeline_.forget(slot, ring != nullptr ? ring->domains : 0);
      registry_.remove_ring(slot);
    }
    registry_.retire_process(image.process);
    return true;
  });
}

void StreamOutput::flush(std::uint64_t now_ns) {
  if (now_ns - last_flush_ns_ < flush_interval_ns && !timeline_.empty()) return;
  sink_.flush();
  last_flush_ns_ = now_ns;
}

void StreamOutput::add_figures(RunSummary& summary) const {
  summary.events = events_;
  summary.late = timeline_.late();
  summary.forced = timeline_.forced();
  summary.drops.push_back({.kind = std::string(RunSummary::unwritten), .count = unwritten_});
}

}  // namespace rtev
