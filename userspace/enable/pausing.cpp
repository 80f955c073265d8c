// SPDX-License-Identifier: MIT
#include "enable/pausing.hpp"

#include <chrono>
#include <future>
#include <utility>

#include "base/clock.hpp"
#include "enable/bounded_task.hpp"

namespace rtev::enable {
namespace {

/// For one program, and for all of them.
constexpr std::chrono::nanoseconds program_timeout{20'000'000}, timeout{1'000'000'000};

}  // namespace

void pause_all(std::vector<PausedAtEnd> programs) {
  const std::uint64_t deadline_ns = monotonic_ns() + static_cast<std::uint64_t>(timeout.count());
  for (PausedAtEnd& program : programs) {
    if (monotonic_ns() >= deadline_ns) return;
    run_bounded(std::packaged_task<void()>([memory = std::move(program.memory), flags = program.flags] {
                  if (memory.word(flags.enabled) == 1) memory.write_word(flags.paused, 1);
                }),
                program_timeout);
  }
}

}  // namespace rtev::enable
