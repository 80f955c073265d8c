// SPDX-License-Identifier: MIT
#include "cli/trace_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <ranges>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/exit_status.hpp"
#include "base/parse.hpp"
#include "cli/messages.hpp"
#include "cli/no_match.hpp"
#include "helper/process_queries.hpp"

namespace rtev::cli {
namespace {

/// For scripts and tests that start programs to trace: writes a line when everything is attached.
void announce_ready(std::optional<int> fd) {
  if (!fd) return;
  constexpr std::string_view line = "ready\n";
  [[maybe_unused]] const ssize_t put = ::write(*fd, line.data(), line.size());
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

/// What a program writes to its ring there then kills it.
bool is_full(const std::string& directory) {
  std::error_code error;
  const auto space = std::filesystem::space(directory, error);
  return !error && space.available == 0;
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

}  // namespace

SessionOptions session_options(const TraceOptions& options, const Invocation& invocation, const Tracing& tracing) {
  SessionOptions session;
  session.discovery = {.filter = {.pids = options.pids,
                                  .name_globs = options.names,
                                  .only_followed = traces_command(options, invocation)},
                       .history = options.history,
                       .services = tracing.shows_services,
                       .forced_version = options.ocaml_version};
  session.duration = options.duration;
  session.memory_limit = options.memory_limit;
  session.max_delay = tracing.max_delay;
  session.unused = tracing.unused;
  session.command_line = invocation.arguments;
  return session;
}

std::optional<int> take_ready_fd() {
  const char* text = std::getenv("RTEV_READY_FD");
  const auto fd = parse_number<int>(text != nullptr ? text : "");
  ::unsetenv("RTEV_READY_FD");
  if (fd && *fd > STDERR_FILENO) ::fcntl(*fd, F_SETFD, FD_CLOEXEC);
  return fd;
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

bool traces_command(const TraceOptions& options, const Invocation& invocation) {
  return !invocation.command.empty() && options.pids.empty();
}

std::expected<std::optional<Command>, int> prepare_command(const TraceOptions& options, const Invocation& invocation,
                                                           const Tracing& tracing, const helper::HelperProcess& helper,
                                                           Command::RingFiles files) {
  if (invocation.command.empty()) return std::nullopt;
  if (auto exists = Command::check(invocation.command.front()); !exists) {
    report(exists.error());
    return std::unexpected(Command::not_found);
  }
  auto prepared = Command::prepare(
      invocation.command, [&helper](ProcessQuery query) { return helper::ask_once(helper, std::move(query)); },
      tracing.owns_stdout ? Command::Stdout::to_stderr : Command::Stdout::own, std::nullopt,
      traces_command(options, invocation) ? files : Command::RingFiles::none);
  if (!prepared) return std::unexpected(report(prepared.error()));
  if (!options.quiet && !prepared->ring_note().empty()) say(fmt::format("rtev-bpf: {}\n", prepared->ring_note()));
  return std::optional<Command>(std::move(*prepared));
}

NeededProcess needed_helper(const helper::HelperProcess& helper) {
  return {.name = "helper", .end_fd = helper.end_fd(), .lacks = "programs that start from now on may not be traced"};
}

void tell_interrupted(const TraceOptions& options, const Tracing& tracing, std::string_view command) {
  const bool is_stopped_service = tracing.is_service && command.empty();
  if (!options.quiet && !is_stopped_service) say(interrupted_message(command));
}

int status_of_interrupted(const Tracing& tracing, const Command* command, const StopSignal& stop) {
  // A service that is stopped has not failed.
  if (tracing.is_service && command == nullptr) return exit_ok;
  return exit_of_signal + stop.received();
}

int run_session(TraceRun run) {
  const TraceOptions& options = run.options;
  Command* const command = run.command;
  const bool is_not_started = command != nullptr && run.stop.received() != 0;
  if (!run.session || is_not_started) {
    tell_interrupted(options, run.tracing, command != nullptr ? command->arguments().front() : "");
    run.end();
    return status_of_interrupted(run.tracing, command, run.stop);
  }
  LiveSession& session = *run.session;
  const bool selects = options.select();
  const bool found_late = !session.found_everything();
  const bool traces_others = command == nullptr || !options.pids.empty();
  if (traces_others && !options.quiet)
    say(start_message(session.registry(), {.has_end = options.duration || run.tracing.is_service || command != nullptr,
                                           .probes_all = options.ringless,
                                           .enables = options.enable,
                                           .selects = selects,
                                           .found_everything = session.found_everything()}));
  if (run.tracing.on_ready) run.tracing.on_ready();
  announce_ready(run.ready_fd);
  // A program that starts now must not wait for it.
  std::jthread names_others;
  if (traces_others && !options.quiet) {
    ProcessOptions missing = unmatched(options, session.registry());
    if (missing.select() && session.found_everything())
      names_others = std::jthread([missing = std::move(missing), &run] { say(no_match_message(missing, run.helper)); });
  }

  LiveSession::Until until{.is_full = run.tracing.is_full, .watched = run.tracing.watched};
  for (const NeededProcess& needed : run.needed) {
    const auto on_end = [&needed, &run] {
      say(
          fmt::format("rtev-bpf: warning: the {} process has ended: {}\n"
                      "hint: was it killed, or is memory short? To have it again, start rtev-bpf again\n",
                      needed.name, needed.lacks));
      if (run.tracing.on_lost) run.tracing.on_lost(needed.name);
    };
    if (needed.end_fd >= 0) until.watched.push_back({.fd = needed.end_fd, .on_readable = on_end, .once = true});
  }
  if (command != nullptr) {
    if (!traces_others) {
      if (auto followed = run.follow(command->pid()); !followed) return report(followed.error());
    }
    if (auto started = command->start(); !started) {
      report(started.error());
      return command->wait();
    }
    until.readable_fd = command->ended_fd();
    until.on_signal = [&](int signal_number) { forward(*command, signal_number, run.stop.from_terminal()); };
  }
  session.run(until);
  // Before the files of rings are removed.
  const std::string full_directory =
      !traces_others && is_full(command->any_ring_directory()) ? command->any_ring_directory() : std::string();
  const bool is_explained = !options.quiet && run.explain_end(traces_others ? nullptr : command);
  const bool has_seen_none = std::ranges::empty(session.registry().processes());
  const bool found_everything = session.found_everything();
  std::string no_events;
  // Otherwise a command may have events that were not traced.
  const bool is_full = run.tracing.is_full && run.tracing.is_full();
  if (!traces_others && !is_explained && !run.tracing.output.error() && !is_full && !options.duration &&
      options.names.empty())
    no_events = no_events_message(command->arguments().front(), session.registry());
  run.session.reset();
  run.end();
  if (command == nullptr) {
    if (!has_seen_none || !selects || run.tracing.is_service) return exit_ok;
    if (!found_everything)
      say(not_looked_at_message(options));
    else if (options.quiet || found_late)
      say(no_match_message(options, run.helper));
    return exit_failure;
  }
  const std::optional<int> ended = wait_for(*command, run.stop, until.on_signal);
  if (!ended) {
    say(left_message(command->pid(), command->arguments().front()));
    command->leave();
    return exit_of_signal + run.stop.received();
  }
  const int status = *ended;
  if (options.quiet) return status;
  if (status == exit_of_signal + SIGBUS && !full_directory.empty())
    say(full_rings_message(command->arguments().front(), full_directory));
  say(survivors_message(command->survivors(), command->arguments().front(), command->ring_directory()));
  // Who was interrupted may not have come to making a ring.
  if (command->survivors().empty() && run.stop.received() == 0) say(no_events);
  return status;
}

}  // namespace rtev::cli
