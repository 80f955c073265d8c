// SPDX-License-Identifier: MIT
#include "enable/pausing.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "enable/bounded_task.hpp"

namespace rtev::enable {
namespace {

using Clock = std::chrono::steady_clock;

/// So many programs at a time, each on a thread of its own, and for how long. One that does not answer must not keep
/// those of others from being paused.
constexpr std::size_t at_once = 64;
constexpr std::chrono::milliseconds step_timeout{20}, timeout{1000};

/// A program that is being paused.
struct Pausing {
  std::shared_ptr<PausedAtEnd> program;
  std::shared_ptr<std::atomic<bool>> is_off;
  std::future<void> done;
};

Pausing begin_to_pause(PausedAtEnd program) {
  auto shared = std::make_shared<PausedAtEnd>(std::move(program));
  auto is_off = std::make_shared<std::atomic<bool>>(false);
  std::packaged_task<void()> task([shared, is_off] {
    const auto enabled = shared->memory.word(shared->flags.enabled);
    if (enabled == 1) shared->memory.write_word(shared->flags.paused, 1);
    *is_off = enabled == 0 && shared->memory.word(shared->flags.paused) == 0;
  });
  auto done = task.get_future();
  run_detached(std::move(task));
  return {.program = std::move(shared), .is_off = std::move(is_off), .done = std::move(done)};
}

}  // namespace

std::vector<PausedAtEnd> pause_all(std::vector<PausedAtEnd> programs) {
  const auto end = Clock::now() + timeout;
  std::vector<PausedAtEnd> off;
  std::span rest(programs);
  while (!rest.empty() && Clock::now() < end) {
    const auto part = rest.first(std::min(rest.size(), at_once));
    rest = rest.subspan(part.size());
    std::vector<Pausing> pausing;
    for (PausedAtEnd& program : part) pausing.push_back(begin_to_pause(std::move(program)));
    const auto step_end = Clock::now() + step_timeout;
    for (const Pausing& one : pausing)
      if (one.done.wait_until(step_end) == std::future_status::ready && *one.is_off)
        off.push_back(std::move(*one.program));
  }
  std::ranges::move(rest, std::back_inserter(off));
  return off;
}

}  // namespace rtev::enable
