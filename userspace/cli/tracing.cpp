// SPDX-License-Identifier: MIT
#include "cli/tracing.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cli/messages.hpp"
#include "cli/rootless_tracing.hpp"
#include "cli/trace_run.hpp"
#include "enable/enabler.hpp"
#include "helper/closers.hpp"
#include "kernel/attacher.hpp"
#include "kernel/features.hpp"
#include "kernel/libbpf.hpp"
#include "session/confinement.hpp"
#include "session/live/live_sources.hpp"

namespace rtev::cli {
namespace {

/// Per CPU enough for about 100 ms of a busy CPU, within fixed bounds.
std::size_t default_buffer_bytes() {
  constexpr std::size_t per_cpu = 1 << 20, min = 4 << 20, max = 64 << 20;
  return std::clamp<std::size_t>(per_cpu * std::thread::hardware_concurrency(), min, max);
}

kernel::StackOptions stack_options(const StackOptions& options) {
  kernel::StackOptions wanted;
  wanted.rate_hz = options.on_cpu ? options.rate_hz : 0;
  wanted.off_cpu = options.off_cpu;
  wanted.min_sleep_ns = static_cast<std::uint64_t>(options.off_cpu_min.count());
  wanted.allocations = options.allocations;
  // Beside the other stacks fewer will do: each then stands for more words.
  if (options.on_cpu && options.off_cpu) wanted.allocation_limit = 500;
  return wanted;
}

LiveOptions live_options(const TraceOptions& options, const Invocation& invocation, const Tracing& tracing) {
  LiveOptions live;
  static_cast<SessionOptions&>(live) = session_options(options, invocation, tracing);
  live.programs.sched = tracing.sums_usage && options.sched == RTEV_SCHED_OCAML ? RTEV_SCHED_SUMS : options.sched;
  live.programs.save_rings = options.save_rings;
  live.programs.sched_buffer_bytes = options.buffer_bytes.value_or(default_buffer_bytes());
  live.programs.follow = traces_command(options, invocation);
  if (options.ringless) live.ringless = kernel::RinglessOptions{.limit = options.ringless_limit};
  if (options.stacks.any()) live.stacks = stack_options(options.stacks);
  live.priority = options.priority;
  return live;
}

/// See TraceRun::explain_end.
bool explain_end(const LiveSources& sources, const Command* command) {
  const kernel::UprobeManager::Figures probes = sources.probes().figures();
  say(missing_probes_message(
      {.binaries = probes.failed, .functions = probes.skipped, .last_error = probes.last_error}));
  say(slow_detach_message(probes.slow_to_detach));
  if (sources.ringless() != nullptr) say(sources.ringless()->unprobed().text());
  if (sources.enabling() != nullptr) say(sources.enabling()->failure_text());
  if (command == nullptr) return false;
  const std::string aborted = aborted_message(sources.discovery().exits().aborted_without_ring(),
                                              command->arguments().front(), command->ring_directory());
  say(aborted);
  return !aborted.empty();
}

/// A signal that waits keeps the kernel from loading programs (EAGAIN), which takes seconds on a busy host. So while
/// they are loaded, signals are handled by another thread, which calls `on_stop` if one requests the end: it is said at
/// once, and the second one has its effect at once.
Result<AttachedPrograms> load_undisturbed(const LiveOptions& options, const StopSignal& stop,
                                          const std::function<void()>& on_stop) {
  constexpr std::chrono::milliseconds look_interval{5};
  std::mutex mutex;
  std::condition_variable_any loaded;
  std::optional<std::jthread> watcher;
  watcher.emplace([&](const std::stop_token& end) {
    std::unique_lock lock(mutex);
    while (stop.received() == 0 && !end.stop_requested())
      loaded.wait_for(lock, end, look_interval, [&] { return end.stop_requested(); });
    if (stop.received() != 0) on_stop();
    loaded.wait(lock, end, [&] { return end.stop_requested(); });
  });
  sigset_t all, previous;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &previous);
  auto attached = AttachedPrograms::load(options);
  watcher.reset();
  ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return attached;
}

int trace_with_bpf(const TraceOptions& options, const Invocation& invocation, const Tracing& tracing,
                   StopSignal& stop) {
  const auto ready_fd = take_ready_fd();
  // Before there are BPF programs and threads: the helper must have nothing of them.
  const auto helper = helper::HelperProcess::start();
  if (!helper) return report(helper.error());
  auto attacher = kernel::Attacher::start(confine_attacher);
  if (!attacher) return report(attacher.error());
  // Another one, since who delays uprobes must not delay the scheduler events of others.
  auto sched_attacher = kernel::Attacher::start(confine_attacher);
  if (!sched_attacher) return report(sched_attacher.error());
  std::optional<enable::Enabler> enabler;
  if (options.enable) {
    auto started =
        enable::Enabler::start({.allowed = {.confined = options.allow_confined, .readable = options.allow_readable},
                                .pauses_at_end = !options.leave_on,
                                .adopts = tracing.adopts_enabled,
                                .max_per_second = options.enable_rate});
    if (!started) return report(started.error());
    enabler.emplace(std::move(*started));
  }
  auto command = prepare_command(options, invocation, tracing, *helper, Command::RingFiles::removed);
  if (!command) return command.error();

  if (*command) stop.accompany(**command);
  LiveOptions live = live_options(options, invocation, tracing);
  live.enabler = enabler ? &*enabler : nullptr;
  live.programs.attach = [&attacher](kernel::UprobeRequest request) { return attacher->attach(std::move(request)); };
  live.programs.attach_again = [&sched_attacher](std::vector<UniqueFd> programs) {
    return sched_attacher->attach_tracepoints(std::move(programs));
  };
  const std::string_view command_name = *command ? std::string_view((*command)->arguments().front()) : "";
  bool is_told = false;
  const auto tell = [&] {
    is_told = true;
    tell_interrupted(options, tracing, command_name);
  };
  auto attached = load_undisturbed(live, stop, tell);
  const auto end = [&] {
    if (enabler && tracing.leaves_enabled && tracing.leaves_enabled()) enabler->leave();
    enabler.reset();
    attacher->abandon();
    sched_attacher->abandon();
  };
  if (stop.received() != 0) {
    if (!is_told) tell();
    end();
    return status_of_interrupted(tracing, *command ? &**command : nullptr, stop);
  }
  if (!attached) return report(attached.error());
  attacher->confine(attached->programs.uses_uprobe_multi());
  sched_attacher->confine(true);  // without what only perf_event takes
  if (auto confined = confine_tracer(); !confined) return report(confined.error());
  // After that, since it starts a thread.
  const helper::Closers closers(*helper);
  LiveSources* sources = nullptr;
  std::vector<NeededProcess> needed{
      needed_helper(*helper),
      {.name = "attacher", .end_fd = attacher->end_fd(), .lacks = "programs that start from now on are not probed"},
      {.name = "scheduler attacher",
       .end_fd = sched_attacher->end_fd(),
       .lacks = "after a time without traced programs there are no scheduler events"}};
  if (enabler)
    needed.push_back(
        {.name = "enabler", .end_fd = enabler->end_fd(), .lacks = "events of programs are not switched on any more"});
  return run_session({.options = options,
                      .tracing = tracing,
                      .helper = *helper,
                      .command = *command ? &**command : nullptr,
                      .stop = stop,
                      .ready_fd = ready_fd,
                      .needed = std::move(needed),
                      .session = LiveSession::start(
                          live, live.programs.sched != RTEV_SCHED_OFF,
                          [&](const Sources::StreamParts& stream) {
                            auto made = std::make_unique<LiveSources>(live, stream, std::move(*attached), *helper);
                            sources = made.get();
                            return made;
                          },
                          tracing.sink, tracing.output, stop),
                      .follow = [&sources](std::int32_t pid) { return sources->follow(pid); },
                      .explain_end = [&sources](const Command* ended) { return explain_end(*sources, ended); },
                      .end = end});
}

std::optional<StopSignal>& stop_signal() {
  static std::optional<StopSignal> signal;
  return signal;
}

struct EndOfSignals {
  EndOfSignals() = default;
  EndOfSignals(const EndOfSignals&) = delete;
  EndOfSignals& operator=(const EndOfSignals&) = delete;
  ~EndOfSignals() { stop_signal().reset(); }
};

bool lacks_bpf(const TraceOptions& options, const kernel::HostFeatures& host) {
  // These options mean nothing without BPF: its errors say what they need.
  return host.denies_bpf && !options.enable && !options.ringless && !options.stacks.need_bpf();
}

}  // namespace

void catch_signals() {
  if (stop_signal()) return;
  // Shells start background jobs with SIGINT ignored. It ends the tracer nevertheless, and CMD, to which it is
  // forwarded: CMD inherits that.
  ::signal(SIGINT, SIG_DFL);
  stop_signal().emplace();
}

int trace(const TraceOptions& options, const Invocation& invocation, const Tracing& tracing) {
  catch_signals();
  const EndOfSignals until_it_ends;
  StopSignal& stop = *stop_signal();
  kernel::set_libbpf_verbose(options.verbose);
  if (auto exist = check_pids(options); !exist) return report(exist.error());
  const kernel::HostFeatures host = kernel::inspect_host();
  if (!lacks_bpf(options, host)) return trace_with_bpf(options, invocation, tracing, stop);
  return trace_without_bpf(options, invocation, tracing, host, stop);
}

bool lacks_bpf(const TraceOptions& options) {
  return lacks_bpf(options, kernel::inspect_host());
}

}  // namespace rtev::cli
