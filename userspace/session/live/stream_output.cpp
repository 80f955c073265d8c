// SPDX-License-Identifier: MIT
#include "session/live/stream_output.hpp"

#include <limits>

namespace rtev {
namespace {

constexpr std::uint64_t flush_interval_ns = 20'000'000;

constexpr auto forever = std::numeric_limits<std::uint64_t>::max();

}  // namespace

void StreamOutput::release(std::uint64_t watermark) {
  consume(watermark);
  sink_.advance(watermark, registry_);
  forget_ended(watermark);
}

void StreamOutput::release_all() {
  consume(forever);
  forget_ended(forever);
}

void StreamOutput::consume(std::uint64_t watermark) {
  timeline_.release(watermark, [this](const Batch& batch) {
    for (const Event& event : batch.events()) ++events_[static_cast<std::size_t>(event.kind)];
    sink_.consume(batch, registry_);
  });
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
}

}  // namespace rtev
