// SPDX-License-Identifier: MIT
#include "session/live_session.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "base/clock.hpp"
#include "session/run_header.hpp"
#include "session/thread_priority.hpp"

namespace rtev {
namespace {

/// How long events are held back so that others of the same time can catch up: between taking an event's time and
/// publishing it a running thread does little.
constexpr std::uint64_t slack_ns = 500'000;

/// The longest that threads may hold events back which are known to have been interrupted, perhaps just then.
constexpr std::uint64_t longest_slack_ns = 100'000'000;

/// Without scheduler events nobody knows who was interrupted.
constexpr std::uint64_t blind_slack_ns = 40'000'000;

/// Longest sleep while events are held back.
constexpr std::uint64_t longest_sleep_ns = 10'000'000;

/// Longest sleep while nothing runs; the kernel side wakes the session when that changes.
constexpr std::uint64_t idle_sleep_ns = 500'000'000;

/// After so long between two ticks the session was stopped, or idle.
constexpr std::uint64_t long_pause_ns = 20'000'000;

/// How long a source that cannot be read to its end may hold back the others.
constexpr std::uint64_t longest_hold_ns = 1'000'000'000;

/// How long the first look at what runs may take before the stream begins all the same.
constexpr std::uint64_t settling_patience_ns = 5'000'000'000;

/// How long the end may wait to learn whether programs that aborted were OCaml's.
constexpr std::uint64_t inspection_patience_ns = 500'000'000;

constexpr std::size_t scanned_in_a_tick = 16;
constexpr std::uint64_t pid_check_interval_ns = 100'000'000;
constexpr std::uint64_t scan_interval_ns = 10'000'000'000;
constexpr std::uint64_t flush_interval_ns = 20'000'000;

constexpr auto forever = std::numeric_limits<std::uint64_t>::max();

constexpr std::array<std::string_view, RTEV_STAT_COUNT> drop_names = {"switch", "wakeup", "exec",      "fork", "exit",
                                                                      "ring",   "probe",  "untracked", "drain"};

}  // namespace

Result<std::unique_ptr<LiveSession>> LiveSession::start(const LiveOptions& options, Sink& sink, const Output& output,
                                                        StopSignal& stop) {
  auto programs = kernel::Programs::load(options.programs);
  if (!programs) return std::unexpected(std::move(programs.error()));
  std::optional<kernel::RinglessPrograms> ringless;
  if (options.ringless) {
    kernel::RinglessOptions wanted = *options.ringless;
    wanted.pids = options.discovery.pids;
    if (options.programs.follow) wanted.followed_map_fd = programs->followed_map_fd();
    auto loaded = kernel::RinglessPrograms::load(wanted);
    if (!loaded) return std::unexpected(std::move(loaded.error()));
    ringless = std::move(*loaded);
  }
  // Subscribe first, scan second: what starts in between is seen twice, and known to be the same.
  if (auto attached = programs->attach(); !attached) return std::unexpected(std::move(attached.error()));
  std::unique_ptr<LiveSession> session(
      new LiveSession(options, sink, output, stop, std::move(*programs), std::move(ringless)));
  sink.header(make_run_header(options.command_line, session->start_ns_));
  session->settle();
  return session;
}

LiveSession::LiveSession(const LiveOptions& options, Sink& sink, const Output& output, StopSignal& stop,
                         kernel::Programs programs, std::optional<kernel::RinglessPrograms> ringless)
    : options_(options),
      sink_(sink),
      output_(output),
      stop_(stop),
      start_ns_(monotonic_ns()),
      timeline_(monotonic_ns),
      programs_(std::move(programs)),
      probes_(programs_, kernel::AttachPolicy::at_once),
      ringless_(ringless
                    ? std::make_unique<Ringless>(
                          std::move(*ringless),
                          Ringless::Stream{
                              .registry = registry_, .timeline = timeline_, .listener = *this, .start_ns = start_ns_},
                          options.discovery)
                    : nullptr),
      inspector_(cache_,
                 [this](int fd, const std::shared_ptr<const Binary>& binary) {
                   kernel::ProbePlan plan;
                   for (const ProbePoint& point : binary->runtime.probes)
                     plan.sites.push_back(
                         {.function = static_cast<std::uint8_t>(point.function), .file_offset = point.file_offset});
                   probes_.add(fd, binary->id, std::move(plan));
                   if (ringless_) ringless_->prepare(fd, *binary);
                 }),
      rings_([this](const Batch& batch) { stage_ring_events(batch); }),
      discovery_(Procfs(), registry_, cache_, inspector_, *this,
                 [&] {
                   DiscoveryOptions discovery = options.discovery;
                   discovery.since_ns = start_ns_;
                   discovery.even_gone = options.ringless.has_value();
                   return discovery;
                 }()),
      lookout_(Procfs(),
               {.fd = programs_.lifecycle_fd(),
                .drain = [this](const Lookout::Consumer& see) { programs_.read_lifecycle(see); },
                .opened = [this](std::int32_t pid, std::uint64_t birth_ns) { programs_.ring_opened(pid, birth_ns); }}),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      is_filtered_(options.programs.sched != RTEV_SCHED_ALL &&
                   (!options.discovery.pids.empty() || !options.discovery.name_globs.empty())) {
  for (const int fd : {lookout_.event_fd(), programs_.sched_fd(), inspector_.event_fd(), stop_.event_fd()}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  if (!ringless_) return;
  epoll_event event{.events = EPOLLIN, .data = {.fd = ringless_->fd()}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, ringless_->fd(), &event);
}

LiveSession::~LiveSession() = default;

/// Finds what runs already. Known processes are named and probed before anyone is told that tracing has begun.
void LiveSession::settle() {
  discovery_.begin_scan(start_ns_);
  last_scan_ns_ = start_ns_;
  discovery_.scan_some(start_ns_, std::numeric_limits<std::size_t>::max());
  const std::uint64_t deadline = monotonic_ns() + settling_patience_ns;
  const auto is_busy = [&] { return !inspector_.idle() || discovery_.is_inspecting(); };
  while (stop_.received() == 0 && !output_.error() && monotonic_ns() < deadline) {
    const bool was_idle = !is_busy();
    tick();
    // What was found out may have led to more.
    if (was_idle && !is_busy()) break;
    pollfd inspected{.fd = inspector_.event_fd(), .events = POLLIN, .revents = 0};
    ::poll(&inspected, 1, 1);
  }
}

RunSummary LiveSession::run(const Until& until) {
  if (until.readable_fd >= 0) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = until.readable_fd}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, until.readable_fd, &event);
  }
  be_prompt();
  while (!should_end(until)) {
    tick();
    sleep();
  }
  return finish();
}

bool LiveSession::should_end(const Until& until) {
  if (output_.error()) return true;
  if (options_.duration && monotonic_ns() >= start_ns_ + static_cast<std::uint64_t>(options_.duration->count()))
    return true;
  if (!until.on_signal && stop_.received() != 0) return true;
  while (const int signal_number = stop_.take()) until.on_signal(signal_number);
  if (pids_ended(monotonic_ns())) return true;
  pollfd ended{.fd = until.readable_fd, .events = POLLIN, .revents = 0};
  return until.readable_fd >= 0 && ::poll(&ended, 1, 0) > 0;
}

/// Takes what is there from all sources, then lets out what is certain to be complete.
void LiveSession::tick() {
  // Neither may the lookout have run since: the ring of a program that ended long ago would be taken for one that runs,
  // and its file may be the next one's by now.
  const std::uint64_t last_tick_ns = std::exchange(last_tick_ns_, monotonic_ns());
  if (last_tick_ns_ - last_tick_ns > long_pause_ns) lookout_.catch_up();
  const std::uint64_t now = monotonic_ns();
  // Records that the lookout has in hand are still to come.
  const std::uint64_t taken_until = std::min(now, lookout_.busy_since().value_or(forever));
  const std::uint64_t told_until = lookout_.has_caught_up() ? now : 0;
  take_sightings();
  discovery_.tick(now, told_until);
  collect_drained();
  if (ringless_) ringless_->tick({.now_ns = now, .taken_until_ns = taken_until}, discovery_, inspector_);
  take_sched();
  take_sched_drops();
  programs_.look_at_cpus();
  any_ran_ = rings_.poll(now, [this](std::uint32_t slot) { return programs_.ran(slot); });
  any_ran_ |= ringless_ && ringless_->is_active();
  const std::uint64_t final_before = watermark(taken_until);
  release(final_before);
  retire(final_before);
  if (now - last_flush_ns_ >= flush_interval_ns || timeline_.empty()) {
    sink_.flush();
    last_flush_ns_ = now;
  }
  scan(now);
}

/// Looks at a few processes at a time: a ring can fill up while hundreds of maps are read.
void LiveSession::scan(std::uint64_t now_ns) {
  if (discovery_.scan_some(now_ns, scanned_in_a_tick) || now_ns - last_scan_ns_ < scan_interval_ns) return;
  last_scan_ns_ = now_ns;
  discovery_.begin_scan(now_ns);
  // Detaching waits for the kernel's grace period.
  inspector_.run_later(
      [this, now_ns, in_use = discovery_.binaries_in_use()] { probes_.detach_unused(in_use, now_ns); });
  if (ringless_) ringless_->detach_unused(now_ns, discovery_, inspector_);
}

/// With -p: the processes asked for are all gone.
bool LiveSession::pids_ended(std::uint64_t now_ns) {
  const auto& pids = options_.discovery.pids;
  if (pids.empty() || now_ns - last_pid_check_ns_ < pid_check_interval_ns) return false;
  last_pid_check_ns_ = now_ns;
  return std::ranges::all_of(pids, [](std::int32_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; });
}

std::uint64_t LiveSession::slack() const {
  return options_.programs.sched == RTEV_SCHED_OFF ? blind_slack_ns : slack_ns;
}

/// Everything up to this time has been taken from all sources, and can be named.
std::uint64_t LiveSession::watermark(std::uint64_t now_ns) {
  const std::uint64_t longest = now_ns - longest_slack_ns;
  const std::uint64_t open_since =
      std::min({now_ns, interrupted_.since(longest).value_or(forever), discovery_.unopened_since().value_or(forever)});
  const std::uint64_t held = std::min({sched_behind_since_ns_, rings_.behind_since_ns().value_or(forever),
                                       discovery_.unnamed_since(now_ns).value_or(forever),
                                       (ringless_ ? ringless_->waiting_since() : std::nullopt).value_or(forever)});
  // Times in rings are what programs say they are: none may hold back the others for long.
  return std::min(std::max(longest, open_since - slack()), std::max(held, now_ns - longest_hold_ns));
}

void LiveSession::release(std::uint64_t watermark) {
  timeline_.release(watermark, [this](const Batch& batch) {
    for (const Event& event : batch.events()) ++summary_.events[static_cast<std::size_t>(event.kind)];
    sink_.consume(batch, registry_);
  });
  if (watermark != forever) sink_.advance(watermark, registry_);
}

/// Forgets images whose last events are out.
void LiveSession::retire(std::uint64_t watermark) {
  std::erase_if(retirees_, [&](const Retiree& retiree) {
    if (retiree.time_ns > watermark) return false;
    for (const std::uint32_t slot : retiree.slots) {
      const RingInfo* ring = registry_.ring(slot);
      timeline_.forget(slot, ring != nullptr ? ring->domains : 0);
      registry_.remove_ring(slot);
      undecided_.erase(slot);
    }
    registry_.retire_process(retiree.process);
    return true;
  });
}

void LiveSession::sleep() {
  std::uint64_t timeout = idle_sleep_ns;
  if (any_ran_) {
    timeout = rings_.interval_ns();
  } else if (!timeline_.empty() || !retirees_.empty()) {
    timeout = std::min(2 * slack(), longest_sleep_ns);
  } else if (!std::exchange(armed_, true)) {
    // One more look first: what ran before the wake-up was armed has left its mark already.
    programs_.arm_wakeup();
    if (ringless_) ringless_->arm_wakeup();
    return;
  }
  for (const auto next_look : {discovery_.next_look_ns(), ringless_ ? ringless_->next_look_ns() : std::nullopt}) {
    const std::uint64_t now = monotonic_ns();
    if (next_look) timeout = std::min(timeout, *next_look - std::min(*next_look, now));
  }
  if (options_.duration) {
    const std::uint64_t end = start_ns_ + static_cast<std::uint64_t>(options_.duration->count());
    timeout = std::min(timeout, end - std::min(end, monotonic_ns()));
  }
  const timespec wait{.tv_sec = static_cast<time_t>(timeout / 1'000'000'000),
                      .tv_nsec = static_cast<long>(timeout % 1'000'000'000)};
  std::array<epoll_event, 8> events;
  ::epoll_pwait2(epoll_.get(), events.data(), events.size(), &wait, nullptr);
  armed_ = false;
}

RunSummary LiveSession::finish() {
  lookout_.stop();
  const std::uint64_t end = monotonic_ns();
  take_sightings();
  discovery_.tick(end, end);
  while (discovery_.unnamed_since(monotonic_ns()) ||
         (discovery_.inspects_aborted() && monotonic_ns() < end + inspection_patience_ns)) {
    pollfd inspected{.fd = inspector_.event_fd(), .events = POLLIN, .revents = 0};
    ::poll(&inspected, 1, 10);
    discovery_.tick(monotonic_ns(), end);
  }
  discovery_.note_memory();
  take_sched();
  take_sched_drops();
  rings_.finish_all(end);
  rings_.update(registry_);
  if (ringless_) ringless_->finish(end, discovery_);
  release(forever);
  retire(forever);

  summary_.start_ns = start_ns_;
  summary_.end_ns = monotonic_ns();
  summary_.late = timeline_.late();
  summary_.forced = timeline_.forced();
  const kernel::Drops drops = programs_.drops();
  for (std::size_t kind = 0; kind < drops.size(); ++kind)
    summary_.drops.push_back({.kind = std::string(drop_names[kind]), .count = drops[kind]});
  if (ringless_) {
    const Ringless::Figures figures = ringless_->figures();
    summary_.drops.push_back({.kind = "probed", .count = figures.dropped + figures.unplaced});
    summary_.drops.push_back({.kind = std::string(RunSummary::limited), .count = figures.gaps});
    summary_.drops.push_back({.kind = std::string(RunSummary::unprobed), .count = ringless_->unprobed().processes()});
  }
  summary_.rings_missed = discovery_.rings_missed() + rings_.taken_over();
  fill_own_cost(summary_);
  sink_.summary(summary_, registry_);
  sink_.flush();
  return summary_;
}

}  // namespace rtev
