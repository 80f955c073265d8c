// SPDX-License-Identifier: MIT
#include "cli/tracing.hpp"

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
#include <vector>

#include "base/exit_status.hpp"
#include "base/parse.hpp"
#include "cli/messages.hpp"
#include "inspect/procfs.hpp"
#include "kernel/libbpf.hpp"
#include "session/command/command.hpp"
#include "session/live/live_session.hpp"

namespace rtev::cli {
namespace {

/// Per CPU enough for about 100 ms of a busy CPU, within fixed bounds.
std::size_t default_buffer_bytes() {
  constexpr std::size_t per_cpu = 1 << 20, min = 4 << 20, max = 64 << 20;
  return std::clamp<std::size_t>(per_cpu * std::thread::hardware_concurrency(), min, max);
}

LiveOptions live_options(const TraceOptions& options, const Invocation& invocation) {
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
  live.command_line = invocation.arguments;
  return live;
}

/// For scripts and tests that start programs to trace: writes a line to the file descriptor RTEV_READY_FD, if set, when
/// everything is attached.
void announce_ready() {
  const char* text = std::getenv("RTEV_READY_FD");
  const auto fd = parse_number<int>(text != nullptr ? text : "");
  if (!fd) return;
  constexpr std::string_view line = "ready\n";
  [[maybe_unused]] const ssize_t put = ::write(*fd, line.data(), line.size());
}

void say(const std::string& message) {
  fmt::print(stderr, "{}", message);
}

/// What went wrong or needs an explanation, apart from losses.
void explain_end(const LiveSession& session, const Command* command) {
  const LiveSources& sources = session.sources();
  const kernel::UprobeManager::Figures probes = sources.probes().figures();
  say(missing_probes_message(
      {.binaries = probes.failed, .functions = probes.skipped, .last_error = probes.last_error}));
  say(slow_exit_message(probes.slow_to_detach));
  if (sources.ringless() != nullptr) say(sources.ringless()->unprobed().text());
  if (command != nullptr)
    say(aborted_message(sources.discovery().exits().aborted_without_ring(), command->arguments().front(),
                        command->ring_directory()));
}

std::vector<Survivor> survivors_of(const Command& command) {
  std::vector<Survivor> survivors;
  for (const std::int32_t pid : command.survivors()) {
    const auto stat = Procfs().stat(pid);
    survivors.push_back({.pid = pid, .comm = stat ? stat->comm : std::string()});
  }
  return survivors;
}

/// Waits for a command after the end of the trace, and forwards signals to it.
int wait_for(Command& command, StopSignal& stop, const std::function<void(int)>& pass_on) {
  while (true) {
    pollfd wait[] = {{.fd = command.ended_fd(), .events = POLLIN, .revents = 0},
                     {.fd = stop.event_fd(), .events = POLLIN, .revents = 0}};
    ::poll(wait, std::size(wait), -1);
    if (wait[0].revents != 0) return command.wait();
    while (const int signal_number = stop.take()) pass_on(signal_number);
  }
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
  kernel::set_libbpf_verbose(options.verbose);
  if (auto exist = check_pids(options); !exist) return report(exist.error());
  // Forked before any thread exists. It waits until released.
  std::optional<Command> command;
  if (!invocation.command.empty()) {
    if (auto exists = Command::check(invocation.command.front()); !exists) {
      report(exists.error());
      return Command::not_found;
    }
    auto prepared =
        Command::prepare(invocation.command, tracing.owns_stdout ? Command::Stdout::to_stderr : Command::Stdout::own);
    if (!prepared) return report(prepared.error());
    command.emplace(std::move(*prepared));
  }

  StopSignal stop(command ? &*command : nullptr);
  auto session = LiveSession::start(live_options(options, invocation), tracing.sink, tracing.output, stop);
  if (!session) return report(session.error());
  if (!command && !options.quiet)
    say(start_message((*session)->registry(), options.duration.has_value(), options.ringless));
  announce_ready();

  LiveSession::Until until;
  if (command) {
    if (auto followed = (*session)->follow(command->pid()); !followed) return report(followed.error());
    if (auto released = command->release(); !released) {
      report(released.error());
      return command->wait();
    }
    until.readable_fd = command->ended_fd();
    until.on_signal = [&](int signal_number) {
      // The terminal sends Ctrl-C to the command, too.
      if (!stop.from_terminal()) command->send(signal_number);
    };
  }
  (*session)->run(until);
  if (!options.quiet) explain_end(**session, command ? &*command : nullptr);
  std::string no_events;
  // Otherwise a command may have events that were not traced.
  if (command && !tracing.output.error() && !options.duration && options.names.empty())
    no_events = no_events_message(command->arguments().front(), (*session)->registry());
  session->reset();
  if (!command) return exit_ok;
  const int status = wait_for(*command, stop, until.on_signal);
  if (options.quiet) return status;
  const auto survivors = survivors_of(*command);
  say(survivors_message(survivors, command->arguments().front(), command->ring_directory()));
  if (survivors.empty()) say(no_events);
  return status;
}

}  // namespace rtev::cli
