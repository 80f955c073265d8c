// SPDX-License-Identifier: MIT
#include "cli/tracing.hpp"

#include <fmt/core.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <thread>

#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "cli/messages.hpp"
#include "formats/text/run_summary.hpp"
#include "inspect/procfs.hpp"
#include "kernel/libbpf_log.hpp"
#include "session/command/command.hpp"
#include "session/live_session.hpp"

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
  live.programs.sched = options.sched == Sched::off   ? RTEV_SCHED_OFF
                        : options.sched == Sched::all ? RTEV_SCHED_ALL
                                                      : RTEV_SCHED_OCAML;
  live.programs.save_rings = options.save_rings == SaveRings::off   ? RTEV_SAVE_OFF
                             : options.save_rings == SaveRings::all ? RTEV_SAVE_ALL
                                                                    : RTEV_SAVE_KNOWN;
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
  if (text == nullptr) return;
  int fd = -1;
  std::from_chars(text, text + std::strlen(text), fd);
  constexpr std::string_view line = "ready\n";
  [[maybe_unused]] const ssize_t put = ::write(fd, line.data(), line.size());
}

void announce_start(const TraceOptions& options, const Registry& registry) {
  if (options.quiet) return;
  const auto all = std::ranges::distance(registry.processes());
  const auto probed = std::ranges::count(registry.processes(), RingState::probed, &ProcessInfo::ring);
  const auto without_ring = std::ranges::count(registry.processes(), RingState::none, &ProcessInfo::ring);
  const auto with_ring = all - probed - without_ring;
  fmt::print(stderr, "Tracing {} OCaml 5 process{}, {} with runtime events on{}.{}\n", all, all == 1 ? "" : "es",
             with_ring, probed == 0 ? "" : fmt::format(", {} by uprobes", probed),
             options.duration ? "" : " Press Ctrl-C to stop.");
  if (with_ring == 0 && !options.ringless)
    fmt::print(stderr,
               "hint: start programs with OCAML_RUNTIME_EVENTS_START=1, or use --ringless to trace programs that run "
               "with events off\n");
}

void explain_missing_probes(const kernel::UprobeManager& probes) {
  if (probes.failed() + probes.skipped() == 0) return;
  const auto error = probes.last_error();
  fmt::print(
      stderr, "rtev-bpf: pauses and resumes of some programs may be missing: cannot probe {}{}\n",
      probes.failed() > 0 ? fmt::format("{} binaries", probes.failed()) : fmt::format("{} functions", probes.skipped()),
      error ? ": " + error->message() : "");
}

/// Says why rtev-bpf does not exit at once.
void explain_slow_exit(const kernel::UprobeManager& probes) {
  constexpr std::size_t min_binaries = 3;
  if (const std::size_t binaries = probes.slow_to_detach(); binaries >= min_binaries)
    fmt::print(stderr, "rtev-bpf: removing the probes of {} binaries, which takes up to {} s before Linux 6.6\n",
               binaries, binaries);
}

void explain_unprobed(const Ringless* ringless) {
  if (ringless == nullptr || ringless->unprobed().processes() == 0) return;
  fmt::print(stderr, "rtev-bpf: {}", ringless->unprobed().text());
}

/// Why there are no events of a command that has ended, if there are none and the reason is certain.
std::optional<std::string_view> reason_without_events(const TraceOptions& options, const Output& output,
                                                      const Registry& registry) {
  const auto has_ring = [](const ProcessInfo& process) { return process.ring != RingState::none; };
  if (output.error() || options.duration || !options.names.empty()) return std::nullopt;
  if (std::ranges::any_of(registry.processes(), has_ring)) return std::nullopt;
  return std::ranges::empty(registry.processes()) ? "it ran no OCaml 5 program"
                                                  : "its OCaml runtime did not start them";
}

void explain_no_events(const Command& command, std::string_view reason) {
  fmt::print(stderr, "rtev-bpf: {} wrote no runtime events: {}\n", escaped(command.arguments().front()), reason);
  fmt::print(stderr, "hint: events need OCaml 5 and are off in set-user-id programs\n");
}

/// OCaml's runtime aborts a program with events on that cannot create its ring.
void explain_aborted(std::uint64_t programs, const Command& command) {
  if (programs == 0 || command.ring_directory().empty()) return;
  fmt::print(stderr,
             "rtev-bpf: {} OCaml program{} aborted (SIGABRT) without a ring: OCaml does that if it cannot create the "
             "ring file in {}, which belongs to the user of {} and does not exist in other roots (chroot, container)\n"
             "hint: set OCAML_RUNTIME_EVENTS_DIR for rtev-bpf to a directory that all of them can write to\n",
             programs, programs == 1 ? "" : "s", command.ring_directory(), escaped(command.arguments().front()));
}

/// Lists the processes that still run after the command has ended.
void explain_survivors(const Command& command) {
  const auto& pids = command.survivors();
  constexpr std::size_t max_listed = 5;
  std::string names;
  for (const std::int32_t pid : pids | std::views::take(max_listed)) {
    const auto stat = Procfs().stat(pid);
    names += fmt::format(" {}{}", pid, stat ? fmt::format(" ({})", escaped(stat->comm)) : "");
  }
  fmt::print(stderr,
             "rtev-bpf: {} process{} started by {} still run{}, no longer traced:{}{}\n"
             "hint: rtev-bpf -p PID traces {}; the ring directory {} is kept, a later run removes it\n",
             pids.size(), pids.size() == 1 ? "" : "es", escaped(command.arguments().front()),
             pids.size() == 1 ? "s" : "", names, pids.size() > max_listed ? " ..." : "",
             pids.size() == 1 ? "it" : "them", command.ring_directory());
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

  std::optional<StopSignal> stop(std::in_place, command ? &*command : nullptr);
  auto session = LiveSession::start(live_options(options, invocation), tracing.sink, tracing.output, *stop);
  if (!session) return report(session.error());
  if (!command) announce_start(options, (*session)->registry());
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
      if (!stop->from_terminal()) command->send(signal_number);
    };
  }
  const RunSummary summary = (*session)->run(until);
  tracing.conclude(summary, (*session)->registry());
  if (!options.quiet) {
    explain_missing_probes((*session)->probes());
    explain_slow_exit((*session)->probes());
    explain_unprobed((*session)->ringless());
    if (command) explain_aborted((*session)->aborted_without_ring(), *command);
  }
  const auto no_events = reason_without_events(options, tracing.output, (*session)->registry());
  session->reset();
  if (!command) return exit_ok;
  const int status = wait_for(*command, *stop, until.on_signal);
  if (options.quiet) return status;
  if (!command->survivors().empty())
    explain_survivors(*command);
  else if (no_events)
    explain_no_events(*command, *no_events);
  return status;
}

}  // namespace rtev::cli
