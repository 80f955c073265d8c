// SPDX-License-Identifier: MIT
#include "session/process_lister.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <thread>
#include <utility>

#include "base/clock.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t last_read_timeout_ns = 100'000'000, past_timeout_ns = 500'000'000;
constexpr std::uint64_t max_poll_interval_ns = 10'000'000;  // of a ring
constexpr std::uint64_t use_timeout_ns = 200'000'000;
constexpr int wait_step_ms = 1;
constexpr double ns_per_s = 1e9;

/// A rate of less time than this says little: a program that has just started, or woken up.
constexpr std::uint64_t min_rate_ns = 10'000'000;

}  // namespace

ProcessLister::ProcessLister(const helper::HelperProcess& helper, ProcessFilter filter, std::size_t ring_descriptors,
                             Sample sample, Consumer consume)
    : sample_(sample),
      queries_(helper, helper::Priority::raised),
      processes_(is_running, registry_),
      inspector_(cache_, [](int, const std::shared_ptr<const Binary>&, std::uint32_t) { return true; }),
      rings_(
          [this, consume = std::move(consume)](const Batch& batch) {
            count(batch);
            consume(batch);
          },
          [](uid_t) { return RingPoller::any_room; }, max_poll_interval_ns),
      discovery_({.queries = queries_,
                  .registry = registry_,
                  .processes = processes_,
                  .cache = cache_,
                  .inspector = inspector_,
                  .events = *this,
                  .kernel = *this,
                  .tasks = tasks_},
                 {.filter = std::move(filter),
                  .history = !sample,
                  .since_ns = UINT64_MAX,
                  .ring_descriptors = ring_descriptors}) {}

ProcessLister::~ProcessLister() = default;

void ProcessLister::run() {
  constexpr auto all = std::numeric_limits<std::uint64_t>::max();
  discovery_.begin_scan(ScanScope::all);
  while (discovery_.is_scanning() || processes_.is_inspecting() || !queries_.is_idle()) {
    tasks_.run(monotonic_ns());
    discovery_.scan_some(all);
    queries_.process(monotonic_ns());
    discovery_.tick(monotonic_ns(), all);
    wait();
  }

  if (sample_) {
    ask_for_use(&Use::before);
    read_for(*sample_);
  } else {
    rings_.finish_all(monotonic_ns(), monotonic_ns() + past_timeout_ns);
  }
  end_ns_ = monotonic_ns();
  ask_for_use(&Use::after);
  wait_for_answers(monotonic_ns() + use_timeout_ns);
  rings_.update(registry_);
  add_rates();
  note_ends();
}

void ProcessLister::read_for(std::chrono::nanoseconds sample) {
  const std::uint64_t begin = monotonic_ns(), end = begin + static_cast<std::uint64_t>(sample.count());
  while (monotonic_ns() < end) {
    queries_.process(monotonic_ns());
    rings_.poll(monotonic_ns(), RingPoller::Which::due,
                {.take = [](std::uint32_t) { return kernel::RingActivity{.ran = true}; }});
    const std::uint64_t next = std::min(end, rings_.next_poll_ns().value_or(end));
    std::this_thread::sleep_for(std::chrono::nanoseconds(next - std::min(next, monotonic_ns())));
  }
  rings_.finish_all(monotonic_ns(), monotonic_ns() + last_read_timeout_ns);
  seconds_ = static_cast<double>(monotonic_ns() - begin) / ns_per_s;
}

/// For an answer, for a moment.
void ProcessLister::wait() const {
  std::array<pollfd, 2> answers{{{.fd = queries_.event_fd(), .events = POLLIN, .revents = 0},
                                 {.fd = inspector_.event_fd(), .events = POLLIN, .revents = 0}}};
  ::poll(answers.data(), answers.size(), wait_step_ms);
}

void ProcessLister::wait_for_answers(std::uint64_t deadline_ns) {
  while (!queries_.is_idle() && monotonic_ns() < deadline_ns) {
    queries_.process(monotonic_ns());
    wait();
  }
}

void ProcessLister::count(const Batch& batch) {
  for (const Event& event : batch.events()) {
    if (event.kind == EventKind::lost) continue;
    Written& written = written_.try_emplace(event.source, Written{event.time, event.time}).first->second;
    written.until_ns = event.time;
    ++written.events;
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
                   use.after_ticks = boot_ticks();
                   if (!view.arguments.empty()) use.arguments = std::move(view.arguments);
                 });
  }
}

ProcessUse ProcessLister::use_of(ProcessIndex process) const {
  const auto found = uses_.find(process);
  if (found == uses_.end()) return {};
  const Use& known = found->second;
  ProcessUse use{
      .events_per_second = known.events_per_second, .cpu_share = cpu_share_of(known), .arguments = known.arguments};
  const std::optional<ProcessStat>& last = known.after ? known.after : known.before;
  if (last) use.memory_bytes = last->memory_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return use;
}

std::optional<double> ProcessLister::cpu_share_of(const Use& use) const {
  if (!use.after || (sample_ && !use.before)) return std::nullopt;
  const std::uint64_t used = use.after->cpu_ticks;
  if (sample_) {
    const auto during = static_cast<double>(used - std::min(use.before->cpu_ticks, used));
    return during / static_cast<double>(::sysconf(_SC_CLK_TCK)) / seconds_;
  }
  const std::uint64_t lived = use.after_ticks - std::min(use.after_ticks, use.after->start_ticks);
  return static_cast<double>(used) / static_cast<double>(std::max<std::uint64_t>(lived, 1));
}

/// Of the past, each domain counts from its oldest event on: the more it writes, the less far back its ring goes.
void ProcessLister::add_rates() {
  for (const auto& [source, written] : written_) {
    const RingInfo* const ring = registry_.ring(Source::unpack(source).slot);
    if (ring == nullptr) continue;
    const bool is_read = registry_.process(ring->process).words.unread == 0;
    const std::uint64_t until_ns = is_read ? end_ns_ : written.until_ns;
    const std::uint64_t past_ns = std::max(until_ns - std::min(until_ns, written.since_ns), min_rate_ns);
    uses_[ring->process].events_per_second +=
        static_cast<double>(written.events) / (sample_ ? seconds_ : static_cast<double>(past_ns) / ns_per_s);
  }
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
