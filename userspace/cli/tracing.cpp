// SPDX-License-Identifier: MIT
#include "cli/tracing.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/exit_status.hpp"
#include "base/parse.hpp"
#include "cli/messages.hpp"
#include "cli/no_match.hpp"
#include "enable/enabler.hpp"
#include "helper/closers.hpp"
#include "helper/process_queries.hpp"
#include "kernel/attacher.hpp"
#include "kernel/libbpf.hpp"
#include "session/command/command.hpp"
#include "session/confinement.hpp"
#include "session/live/live_session.hpp"

namespace rtev::cli {
namespace {

/// Per CPU enough for about 100 ms of a busy CPU, within fixed bounds.
std::size_t default_buffer_bytes() {
  constexpr std::size_t per_cpu = 1 << 20, min = 4 << 20, max = 64 << 20;
  return std::clamp<std::size_t>(per_cpu * std::thread::hardware_concurrency(), min, max);
}

LiveOptions live_options(const TraceOptions& options, const Invocation& invocation, const Tracing& tracing) {
  const bool has_command = !invocation.command.empty();
  LiveOptions live;
  live.discovery = {.filter = {.pids = options.pids, .name_globs = options.names, .only_followed = has_command},
                    .history = options.history,
                    .forced_version = options.ocaml_version};
  live.programs.sched = options.sched;
  live.programs.save_rings = options.save_rings;
  live.programs.sched_buffer_bytes = options.buffer_bytes.value_or(default_buffer_bytes());
  live.programs.follow = has_command;
  if (options.ringless) live.ringless = kernel::RinglessOptions{.limit = options.ringless_limit};
  live.duration = options.duration;
  live.memory_limit = options.memory_limit;
  live.priority = options.priority;
  live.max_delay = tracing.max_delay;
  live.command_line = invocation.arguments;
  return live;
}

/// The file descriptor that RTEV_READY_FD names, which CMD does not inherit.
std::optional<int> take_ready_fd() {
  const char* text = std::getenv("RTEV_READY_FD");
  const auto fd = parse_number<int>(text != nullptr ? text : "");
  ::unsetenv("RTEV_READY_FD");
  if (fd && *fd > STDERR_FILENO) ::fcntl(*fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

/// For scripts and tests that start programs to trace: writes a line when everything is attached.
void announce_ready(std::optional<int> fd) {
  if (!fd) return;
  constexpr std::string_view line = "ready\n";
  [[maybe_unused]] const ssize_t put = ::write(*fd, line.data(), line.size());
}

/// What went wrong or needs an explanation, apart from losses.
void explain_end(const LiveSession& session, const Command* command) {
  const LiveSources& sources = session.sources();
  const kernel::UprobeManager::Figures probes = sources.probes().figures();
  say(missing_probes_message(
      {.binaries = probes.failed, .functions = probes.skipped, .last_error = probes.last_error}));
  say(slow_detach_message(probes.slow_to_detach));
  if (sources.ringless() != nullptr) say(sources.ringless()->unprobed().text());
  if (sources.enabling() != nullptr) say(sources.enabling()->failure_text());
  if (command != nullptr)
    say(aborted_message(sources.discovery().exits().aborted_without_ring(), command->arguments().front(),
                        command->ring_directory()));
}

/// Passes a signal of the tracer on to the command. In a terminal the command has it already, unless it has a session
/// of its own.
void forward(const Command& command, int signal_number, bool from_terminal) {
  if (!command.has_own_session()) {
    if (!from_terminal) command.send(signal_number);
    return;
  }
  switch (signal_number) {
    case SIGTSTP:  // which the kernel does not deliver to a session without a terminal
      command.send_to_group(SIGSTOP);
      ::raise(SIGSTOP);
      break;
    case SIGCONT:
    case SIGWINCH:
      command.send_to_group(signal_number);
      break;
    default:
      from_terminal ? command.send_to_group(signal_number) : command.send(signal_number);
  }
}

/// Waits for a command after the end of the trace, and forwards signals to it. Nothing if it is to be left.
std::optional<int> wait_for(Command& command, StopSignal& stop, const std::function<void(int)>& pass_on) {
  while (true) {
    if (stop.leaves_command()) return std::nullopt;
    pollfd wait[] = {{.fd = command.ended_fd(), .events = POLLIN, .revents = 0},
                     {.fd = stop.event_fd(), .events = POLLIN, .revents = 0}};
    ::poll(wait, std::size(wait), -1);
    if (wait[0].revents != 0) return command.wait();
    while (const int signal_number = stop.take()) pass_on(signal_number);
  }
}

/// A signal that waits keeps the kernel from loading programs (EAGAIN): it is handled afterwards.
Result<AttachedPrograms> load_undisturbed(const LiveOptions& options) {
  sigset_t all, previous;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &previous);
  auto attached = AttachedPrograms::load(options);
  ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  return attached;
}

Result<void> check_pids(const TraceOptions& options) {
  for (const std::int32_t pid : options.pids) {
    if (::kill(pid, 0) == 0 || errno != ESRCH) continue;
    return std::unexpected(Error{.what = "cannot trace process",
                                 .subject = std::to_string(pid),
                                 .why = "no such process",
                                 .hint = "rtev-bpf ps lists OCaml processes"});
  }
  return {};
}

}  // namespace

int trace(const TraceOptions& options, const Invocation& invocation, const Tracing& tracing) {
  // Shells start background jobs with SIGINT ignored. It ends the tracer nevertheless; with CMD only from StopSignal
  // on, since CMD inherits what the shell has set.
  if (invocation.command.empty()) ::signal(SIGINT, SIG_DFL);
  kernel::set_libbpf_verbose(options.verbose);
  if (auto exist = check_pids(options); !exist) return report(exist.error());
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
    auto started = enable::Enabler::start({.allow_confined = options.allow_confined,
                                           .pauses_at_end = !options.leave_on,
                                           .max_per_second = options.enable_rate});
    if (!started) return report(started.error());
    enabler.emplace(std::move(*started));
  }
  // Forked before any thread exists. It waits until released.
  std::optional<Command> command;
  if (!invocation.command.empty()) {
    if (auto exists = Command::check(invocation.command.front()); !exists) {
      report(exists.error());
      return Command::not_found;
    }
    auto prepared = Command::prepare(
        invocation.command, [&helper](ProcessQuery query) { return helper::ask_once(*helper, std::move(query)); },
        tracing.owns_stdout ? Command::Stdout::to_stderr : Command::Stdout::own);
    if (!prepared) return report(prepared.error());
    command.emplace(std::move(*prepared));
  }

  StopSignal stop(command ? &*command : nullptr);
  LiveOptions live = live_options(options, invocation, tracing);
  live.enabler = enabler ? &*enabler : nullptr;
  live.programs.attach = [&attacher](kernel::UprobeRequest request) { return attacher->attach(std::move(request)); };
  live.programs.attach_again = [&sched_attacher](std::vector<UniqueFd> programs) {
    return sched_attacher->attach_tracepoints(std::move(programs));
  };
  auto attached = load_undisturbed(live);
  if (!attached) return report(attached.error());
  attacher->confine(attached->programs.uses_uprobe_multi());
  sched_attacher->confine(true);  // without what only perf_event takes
  if (auto confined = confine_tracer(); !confined) return report(confined.error());
  // After that, since it starts a thread.
  const helper::Closers closers(*helper);
  auto session = LiveSession::start(live, std::move(*attached), *helper, tracing.sink, tracing.output, stop);
  if (!command && !options.quiet)
    say(start_message(session->registry(), {.has_end = options.duration.has_value(),
                                            .probes_all = options.ringless,
                                            .enables = options.enable,
                                            .selects = !options.pids.empty() || !options.names.empty(),
                                            .found_everything = session->found_everything()}));
  announce_ready(ready_fd);
  // A program that starts now must not wait for it.
  std::jthread names_others;
  if (!command && !options.quiet && selects_none(options, session->registry()))
    names_others = std::jthread([&options, &helper] { say(no_match_message(options, *helper)); });

  LiveSession::Until until{.is_full = tracing.is_full};
  if (command) {
    if (auto followed = session->follow(command->pid()); !followed) return report(followed.error());
    if (auto released = command->release(); !released) {
      report(released.error());
      return command->wait();
    }
    until.readable_fd = command->ended_fd();
    until.on_signal = [&](int signal_number) { forward(*command, signal_number, stop.from_terminal()); };
  }
  session->run(until);
  if (!options.quiet) explain_end(*session, command ? &*command : nullptr);
  std::string no_events;
  // Otherwise a command may have events that were not traced.
  const bool is_full = tracing.is_full && tracing.is_full();
  if (command && !tracing.output.error() && !is_full && !options.duration && options.names.empty())
    no_events = no_events_message(command->arguments().front(), session->registry());
  session.reset();
  enabler.reset();
  attacher->abandon();
  sched_attacher->abandon();
  if (!command) return exit_ok;
  const std::optional<int> ended = wait_for(*command, stop, until.on_signal);
  if (!ended) {
    say(left_message(command->pid(), command->arguments().front()));
    command->leave();
    return exit_of_signal + stop.received();
  }
  const int status = *ended;
  if (options.quiet) return status;
  say(survivors_message(command->survivors(), command->arguments().front(), command->ring_directory()));
  if (command->survivors().empty()) say(no_events);
  return status;
}

}  // namespace rtev::cli
