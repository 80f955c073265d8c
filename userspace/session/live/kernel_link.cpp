// SPDX-License-Identifier: MIT
#include "session/live/kernel_link.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <thread>

#include "base/clock.hpp"

namespace rtev {
namespace {

/// How long a saved ring may wait behind an unfinished record of another one, and how often to look.
constexpr std::uint64_t saved_timeout_ns = 50'000'000;
constexpr std::chrono::nanoseconds saved_retry{100'000};

}  // namespace

void KernelLink::track(std::int32_t pid, const rtev_tracked& tracked) {
  // Fails, and is counted as a drop, when the kernel's table is full. The ring is read nevertheless, but later.
  [[maybe_unused]] const auto result = control_.track(pid, tracked);
  if (tracked.slot == 0 && tracked.binary != 0) on_ringless_(tracked.binary);
}

std::optional<SavedRingFile> KernelLink::take_saved_ring(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns) {
  // This thread may have interrupted the process whose record is unfinished while it saved its ring.
  const std::uint64_t deadline = monotonic_ns() + saved_timeout_ns;
  for (collect_saved_rings(); source_.has_unread_saved() && monotonic_ns() < deadline; collect_saved_rings())
    std::this_thread::sleep_for(saved_retry);
  return saved_.take(pid, from_ns, to_ns);
}

void KernelLink::collect_saved_rings() {
  source_.read_saved(
      [this](const rtev_saved& record, std::span<const std::byte> payload) { saved_.add(record, payload); });
}

}  // namespace rtev
