// SPDX-License-Identifier: MIT
#include "session/live/kernel_link.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <thread>
#include <utility>

#include "base/clock.hpp"

namespace rtev {
namespace {

/// How often to look whether records of saved rings are finished.
constexpr std::chrono::nanoseconds saved_retry{100'000};

}  // namespace

void KernelLink::track(std::int32_t pid, const rtev_tracked& tracked) {
  // Fails, and is counted as a drop, when the kernel's table is full. The ring is read nevertheless, but later.
  [[maybe_unused]] const auto result = control_.track(pid, tracked);
  on_tracked_(pid);
  if (tracked.slot == 0 && tracked.binary != 0) on_ringless_(tracked.binary);
}

std::optional<SavedRingFile> KernelLink::take_saved_ring(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns) {
  // This thread may have interrupted the process whose record is unfinished while it saved its ring.
  // But where rings are saved all the time there are always unfinished ones.
  collect_saved_rings();
  for (std::uint64_t now = monotonic_ns(); source_.has_unread_saved() && waits_.has_left(now);) {
    std::this_thread::sleep_for(saved_retry);
    collect_saved_rings();
    const std::uint64_t before = std::exchange(now, monotonic_ns());
    waits_.use(now - before, now);
  }
  return saved_.take(pid, from_ns, to_ns);
}

void KernelLink::collect_saved_rings() {
  source_.read_saved(
      [this](const rtev_saved& record, std::span<const std::byte> payload) { saved_.add(record, payload); });
}

}  // namespace rtev
