// SPDX-License-Identifier: MIT
#include "session/live/live_session.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "session/run_header.hpp"

namespace rtev {
namespace {

/// Longest sleep while events are held back.
constexpr std::uint64_t max_sleep_ns = 10'000'000;

/// Longest sleep while nothing runs; BPF wakes the session when that changes.
constexpr std::uint64_t idle_sleep_ns = 1'000'000'000;

/// How long the first scan may delay the stream.
constexpr std::uint64_t settling_timeout_ns = 5'000'000'000;

/// How much of a duration that may take: on an overloaded host nothing would be left of it.
constexpr std::uint64_t max_settling_of_duration_ns = 500'000'000;

/// The longest wait for the next answer while processes are looked at. They are looked at by processes of a lower
/// priority: to look for answers more often would keep them from it.
constexpr std::uint64_t min_settling_wait_ms = 1, max_settling_wait_ms = 20;

/// How long events that are read may take to be written at the end.
constexpr std::uint64_t last_delivery_timeout_ns = 1'000'000'000;

constexpr std::uint64_t pid_check_interval_ns = 100'000'000;

std::uint64_t from_now_until(std::uint64_t time_ns) {
  return time_ns - std::min(time_ns, monotonic_ns());
}

}  // namespace

std::unique_ptr<LiveSession> LiveSession::start(const SessionOptions& options, bool has_sched, const MakeSources& make,
                                                Sink& sink, const Output& output, StopSignal& stop) {
  if (stop.received() != 0) return nullptr;
  std::unique_ptr<LiveSession> session(new LiveSession(options, has_sched, make, sink, output, stop));
  if (stop.received() != 0) return nullptr;
  sink.header(make_run_header(options.command_line, session->start_ns_));
  session->settle();
  return session;
}

LiveSession::LiveSession(const SessionOptions& options, bool has_sched, const MakeSources& make, Sink& sink,
                         const Output& output, StopSignal& stop)
    : options_(options),
      sink_(sink),
      output_(output),
      stop_(stop),
      start_ns_(monotonic_ns()),
      timeline_(monotonic_ns, MemoryShares(options.memory_limit).staged_events),
      stream_(timeline_, registry_, sink),
      sources_(make(
          {.registry = registry_, .timeline = timeline_, .output = stream_, .tasks = tasks_, .start_ns = start_ns_})),
      watermark_(has_sched),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  ending_.at(end_ns());
  for (const int fd : sources_->event_fds()) wake_on(fd);
  wake_on(stop_.event_fd());
}

/// Finds the processes that run already, and names and probes them before the session is reported as ready.
void LiveSession::settle() {
  sources_->begin_scan(start_ns_);
  const std::uint64_t begin = monotonic_ns(), deadline = begin + settling_timeout_ns;
  while (stop_.received() == 0 && !output_.error() && monotonic_ns() < deadline) {
    const bool was_idle = !sources_->is_inspecting();
    tick();
    // What was inspected may have led to more.
    found_everything_ = was_idle && !sources_->is_inspecting();
    if (found_everything_) break;
    const std::uint64_t so_far_ms = (monotonic_ns() - begin) / 1'000'000;
    constexpr std::uint64_t part = 16;
    sources_->await_inspected(
        static_cast<int>(std::clamp(so_far_ms / part, min_settling_wait_ms, max_settling_wait_ms)));
  }
  settled_ns_ = monotonic_ns();
  ending_.at(end_ns());
}

RunSummary LiveSession::run(const Until& until) {
  if (until.readable_fd >= 0) wake_on(until.readable_fd);
  for (const Watched& watched : until.watched) wake_on(watched.fd, watched.once);
  while (!should_end(until)) {
    tick();
    sleep(until);
  }
  return finish(until.is_full && until.is_full() ? Sources::Rest::stays : Sources::Rest::is_read);
}

/// Of the run so far.
RunSummary LiveSession::figures() {
  sources_->update_registry();
  RunSummary summary;
  summary.start_ns = start_ns_;
  summary.end_ns = monotonic_ns();
  stream_.add_figures(summary);
  sources_->add_figures(summary);
  fill_own_cost(summary);
  return summary;
}

/// Reads what is left in all sources, delivers all events, and gives the sink the summary.
RunSummary LiveSession::finish(Sources::Rest rest) {
  sources_->drain(rest);
  stream_.deliver_all(monotonic_ns() + last_delivery_timeout_ns);
  const RunSummary summary = figures();
  sink_.summary(summary, registry_);
  sink_.flush();
  return summary;
}

/// Does what is due, reads all sources, then delivers what is certain to be complete.
void LiveSession::tick() {
  tasks_.run(monotonic_ns());
  const auto [now, read_until] = sources_->collect();
  stream_.deliver(watermark_.at(read_until, sources_->holds(read_until)));
  if (sink_.wants_checkpoint()) sink_.checkpoint(figures(), registry_);
  stream_.flush(now);
  sources_->scan_some();
  // Later than that it found everything at the beginning; what has come since is found by its own records.
  found_everything_ = found_everything_ || (settled_ns_ != 0 && !sources_->is_inspecting());
}

bool LiveSession::should_end(const Until& until) {
  if (output_.error() || (until.is_full && until.is_full())) return true;
  if (const auto end = end_ns(); end && monotonic_ns() >= *end) return true;
  if (!until.on_signal && stop_.received() != 0) return true;
  while (const int signal_number = stop_.take()) until.on_signal(signal_number);
  if (stop_.leaves_command()) return true;
  if (have_pids_ended(monotonic_ns())) return true;
  pollfd ended{.fd = until.readable_fd, .events = POLLIN, .revents = 0};
  return until.readable_fd >= 0 && ::poll(&ended, 1, 0) > 0;
}

/// True if only certain processes are to be traced and all of them are gone.
bool LiveSession::have_pids_ended(std::uint64_t now_ns) {
  const auto& pids = options_.discovery.filter.pids;
  if (pids.empty() || now_ns - last_pid_check_ns_ < pid_check_interval_ns) return false;
  last_pid_check_ns_ = now_ns;
  return std::ranges::all_of(pids, [](std::int32_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; });
}

std::optional<std::uint64_t> LiveSession::end_ns() const {
  if (!options_.duration) return std::nullopt;
  const std::uint64_t begin_ns = std::max(start_ns_, settled_ns_ - std::min(settled_ns_, max_settling_of_duration_ns));
  return begin_ns + static_cast<std::uint64_t>(options_.duration->count());
}

void LiveSession::wake_on(int fd, bool once) const {
  epoll_event event{.events = once ? EPOLLIN | EPOLLONESHOT : EPOLLIN, .data = {.fd = fd}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void LiveSession::sleep(const Until& until) {
  std::uint64_t timeout = idle_sleep_ns;
  if (stream_.has_backlog() || sources_->is_behind()) {
    timeout = 0;
  } else if (!sources_->any_runs() && !std::exchange(wakeup_armed_, true)) {
    // One more look first: what ran before the wake-up was armed is visible there.
    return sources_->wake_if_active();
  } else if (sources_->has_news() || (!sources_->any_runs() && !stream_.is_empty())) {
    timeout = std::min(2 * watermark_.slack_ns(), max_sleep_ns);
  }
  if (const auto due = tasks_.next_due_ns()) timeout = std::min(timeout, from_now_until(*due));
  const timespec wait{.tv_sec = static_cast<time_t>(timeout / 1'000'000'000),
                      .tv_nsec = static_cast<long>(timeout % 1'000'000'000)};
  std::array<epoll_event, 8> events;
  const int ready = ::epoll_pwait2(epoll_.get(), events.data(), events.size(), &wait, nullptr);
  wakeup_armed_ = false;
  for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(std::max(ready, 0)))) {
    const auto watched = std::ranges::find(until.watched, event.data.fd, &Watched::fd);
    if (watched != until.watched.end()) watched->on_readable();
  }
}

}  // namespace rtev
