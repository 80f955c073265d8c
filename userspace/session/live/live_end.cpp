// SPDX-License-Identifier: MIT
// How LiveSources ends: program images, and the session.
#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "session/live/live_sources.hpp"

namespace rtev {
namespace {

/// How long the end may wait to learn whether programs that aborted were OCaml programs.
constexpr std::uint64_t inspection_timeout_ns = 500'000'000;

/// How long the end may wait for the peak memory of programs that continue.
constexpr std::uint64_t peak_memory_timeout_ns = 200'000'000;

/// How long the end may wait for the code that the last stacks were in.
constexpr std::uint64_t naming_stacks_timeout_ns = 500'000'000;

/// How long reading what is left may take at the end.
constexpr std::uint64_t drain_timeout_ns = 1'000'000'000;

/// How long images that ended wait for room for their events, and how many of them.
constexpr std::uint64_t max_end_wait_ns = 500'000'000;
constexpr std::size_t max_waiting_ends = 256;

}  // namespace

void LiveSources::on_image_end(const ImageEnd& end) {
  const std::uint64_t now = monotonic_ns();
  if (enabling_) enabling_->forget(end.process);
  if (stacks_) {
    // Its last stacks, while its process is known.
    stacks_->stage(now);
    stacks_->forget(end.process);
  }
  sched_attachment_.end(now);
  for (const std::uint32_t slot : end.slots) rings_.seal(slot, end.time_ns);
  ended_.push_back({.end = end, .deadline_ns = now + max_end_wait_ns});
  finish_ended(now);
}

/// Many programs may end at once, with more events than there is room for.
void LiveSources::finish_ended(std::uint64_t now_ns) {
  std::erase_if(ended_, [&, waiting = ended_.size()](const Ended& image) mutable {
    bool is_read = true;
    for (const std::uint32_t slot : image.end.slots) is_read &= rings_.read_last(slot, now_ns);
    const bool has_time = !drains_ && now_ns < image.deadline_ns && waiting <= max_waiting_ends;
    if (!is_read && has_time) return false;
    finish(image.end, now_ns);
    --waiting;
    return true;
  });
}

void LiveSources::finish(const ImageEnd& end, std::uint64_t now) {
  ProcessInfo& info = stream_.registry.process(end.process);
  info.words = {};
  info.domains = 0;
  for (const std::uint32_t slot : end.slots) {
    rings_.finish(slot, now, info, [&] {
      return slot == end.slots.back() ? kernel_.take_saved_ring(info.pid, end.announced_ns, end.announced_ns)
                                      : std::nullopt;
    });
    ring_stager_.forget(slot);
  }
  kernel_.forget_saved_rings(info.pid, end.time_ns);
  std::vector<std::uint32_t> slots = end.slots;
  if (ringless_) ringless_->end_image(end.process, {.time_ns = end.time_ns, .by_exec = end.by_exec}, slots);
  stream_.output.add_ended({.time_ns = std::max(end.time_ns, now), .process = end.process, .slots = std::move(slots)});
}

void LiveSources::drain(Rest rest) {
  drains_ = true;
  lifecycle_.stop();
  const std::uint64_t end = monotonic_ns();
  take_lifecycle_events();
  discovery_.tick(end, end);
  finish_ended(end);
  while (discovery_.unnamed_since(monotonic_ns()) ||
         (discovery_.exits().inspects_aborted() && monotonic_ns() < end + inspection_timeout_ns)) {
    await_inspected(1);
    discovery_.tick(monotonic_ns(), end);
    poll_rings(monotonic_ns());
  }
  processes_.ask_peak_memory(queries_);
  const std::uint64_t peak_memory_deadline = monotonic_ns() + peak_memory_timeout_ns;
  for (std::uint64_t now = 0; !queries_.is_idle() && now < peak_memory_deadline; now = monotonic_ns()) {
    await_inspected(1);
    queries_.process(monotonic_ns());
    poll_rings(monotonic_ns());
  }
  sched_.stage(monotonic_ns(), forever);
  end_stacks();
  rings_.finish_all(end, rest == Rest::is_read ? end + drain_timeout_ns : end);
  rings_.update(stream_.registry);
  if (ringless_) ringless_->finish(end);
}

/// Takes the last stacks. What they take to be named may not be known yet.
void LiveSources::end_stacks() {
  if (!stacks_) return;
  stacks_->stage(monotonic_ns());
  stacks_->end_sleeps(monotonic_ns());
  const std::uint64_t deadline = monotonic_ns() + naming_stacks_timeout_ns;
  while (stacks_->has_waiting() && !code_queries_->is_idle() && monotonic_ns() < deadline) {
    pollfd answered{.fd = code_queries_->event_fd(), .events = POLLIN, .revents = 0};
    ::poll(&answered, 1, 1);
    code_queries_->process(monotonic_ns());
  }
  stacks_->give_up();
}

}  // namespace rtev
