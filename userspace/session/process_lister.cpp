// SPDX-License-Identifier: MIT
#include "session/process_lister.hpp"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "base/clock.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t last_read_timeout_ns = 100'000'000;
constexpr std::uint64_t max_poll_interval_ns = 10'000'000;  // of a ring
constexpr std::uint64_t use_timeout_ns = 200'000'000;
constexpr std::chrono::milliseconds wait_step{1};

}  // namespace

ProcessLister::ProcessLister(const helper::HelperProcess& helper, ProcessFilter filter, std::size_t ring_descriptors,
                             Consumer consume)
    : queries_(helper, helper::Priority::raised),
      processes_(is_running, registry_),
      inspector_(cache_, [](int, const std::shared_ptr<const Binary>&, std::uint32_t) { return true; }),
      rings_(
          std::move(consume), [](uid_t) { return RingPoller::any_room; }, max_poll_interval_ns),
      discovery_({.queries = queries_,
                  .registry = registry_,
                  .processes = processes_,
                  .cache = cache_,
                  .inspector = inspector_,
                  .events = *this,
                  .kernel = *this,
                  .tasks = tasks_},
                 {.filter = std::move(filter), .since_ns = UINT64_MAX, .ring_descriptors = ring_descriptors}) {}

void ProcessLister::run(std::chrono::nanoseconds sample) {
  constexpr auto all = std::numeric_limits<std::uint64_t>::max();
  discovery_.begin_scan(ScanScope::all);
  while (discovery_.is_scanning() || processes_.is_inspecting() || !queries_.is_idle()) {
    tasks_.run(monotonic_ns());
    discovery_.scan_some(all);
    queries_.process(monotonic_ns());
    discovery_.tick(monotonic_ns(), all);
    std::this_thread::sleep_for(wait_step);
  }

  ask_for_use(&Use::before);
  const std::uint64_t begin = monotonic_ns();
  const auto end = begin + static_cast<std::uint64_t>(sample.count());
  while (monotonic_ns() < end) {
    queries_.process(monotonic_ns());
    rings_.poll(monotonic_ns(), RingPoller::Which::due,
                {.take = [](std::uint32_t) { return kernel::RingActivity{.ran = true}; }});
    const std::uint64_t next = std::min(end, rings_.next_poll_ns().value_or(end));
    std::this_thread::sleep_for(std::chrono::nanoseconds(next - std::min(next, monotonic_ns())));
  }
  rings_.finish_all(monotonic_ns(), monotonic_ns() + last_read_timeout_ns);
  seconds_ = static_cast<double>(monotonic_ns() - begin) / 1e9;
  ask_for_use(&Use::after);
  wait_for_answers(monotonic_ns() + use_timeout_ns);
  rings_.update(registry_);
  note_ends();
}

void ProcessLister::wait_for_answers(std::uint64_t deadline_ns) {
  while (!queries_.is_idle() && monotonic_ns() < deadline_ns) {
    queries_.process(monotonic_ns());
    std::this_thread::sleep_for(wait_step);
  }
}

void ProcessLister::ask_for_use(std::optional<ProcessStat> Use::* when) {
  for (const auto& [index, info] : registry_.indexed_processes()) {
    const bool wants_arguments = !uses_.contains(index);
    queries_.ask({.pid = info.pid, .arguments = wants_arguments}, info.user,
                 [this, when, index, start_ticks = info.start_ticks](ProcessView view) {
                   if (!view.stat || view.stat->start_ticks != start_ticks) return;
                   Use& use = uses_[index];
                   use.*when = std::move(view.stat);
                   if (!view.arguments.empty()) use.arguments = std::move(view.arguments);
                 });
  }
}

ProcessUse ProcessLister::use_of(ProcessIndex process) const {
  const auto found = uses_.find(process);
  if (found == uses_.end()) return {};
  const auto& [before, after, arguments] = found->second;
  ProcessUse use{.arguments = arguments};
  const std::optional<ProcessStat>& last = after ? after : before;
  if (last) use.memory_bytes = last->memory_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (before && after) {
    const auto used = static_cast<double>(after->cpu_ticks - std::min(before->cpu_ticks, after->cpu_ticks));
    use.cpu_share = used / static_cast<double>(::sysconf(_SC_CLK_TCK)) / seconds_;
  }
  return use;
}

/// Processes may have ended since they were found: without BPF nothing reports that.
void ProcessLister::note_ends() {
  for (const auto& [index, info] : registry_.indexed_processes()) {
    if (!is_running(info.pid)) registry_.process(index).ring = after_end(info.ring);
  }
}

/// Where BPF would read whether the events of the process are paused.
void ProcessLister::track(std::int32_t pid, const rtev_tracked& tracked) {
  const TracedProcess* const process = processes_.find(pid);
  if (tracked.paused_flag == 0 || process == nullptr || !process->index) return;
  queries_.ask({.pid = pid, .word_address = tracked.paused_flag}, process->user,
               [this, index = *process->index](const ProcessView& view) {
                 RingState& ring = registry_.process(index).ring;
                 if (view.word.value_or(0) != 0 && ring == RingState::active) ring = RingState::paused;
               });
}

void ProcessLister::on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) {
  rings_.add(slot, process, 0, std::move(ring), monotonic_ns());
}

}  // namespace rtev
