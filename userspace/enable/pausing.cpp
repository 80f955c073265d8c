// SPDX-License-Identifier: MIT
#include "enable/pausing.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "enable/bounded_task.hpp"

namespace rtev::enable {
namespace {

/// For one program, and for all of them.
constexpr std::chrono::nanoseconds program_timeout{20'000'000}, timeout{1'000'000'000};

}  // namespace

std::vector<PausedAtEnd> pause_all(std::vector<PausedAtEnd> programs) {
  const std::uint64_t deadline_ns = monotonic_ns() + static_cast<std::uint64_t>(timeout.count());
  std::vector<PausedAtEnd> off;
  for (PausedAtEnd& program : programs) {
    if (monotonic_ns() >= deadline_ns) break;
    const auto shared = std::make_shared<PausedAtEnd>(std::move(program));
    const auto is_off = std::make_shared<std::atomic<bool>>(false);
    const bool is_answered = run_bounded(std::packaged_task<void()>([shared, is_off] {
                                           const auto enabled = shared->memory.word(shared->flags.enabled);
                                           if (enabled == 1) shared->memory.write_word(shared->flags.paused, 1);
                                           *is_off = enabled == 0 && shared->memory.word(shared->flags.paused) == 0;
                                         }),
                                         program_timeout);
    if (is_answered && *is_off) off.push_back(std::move(*shared));
  }
  return off;
}

}  // namespace rtev::enable
