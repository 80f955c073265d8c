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
#include "formats/text/run_summary.hpp"
#include "inspect/procfs.hpp"
#include "kernel/libbpf_log.hpp"
#include "session/command/command.hpp"
#include "session/live_session.hpp"

namespace rtev::cli {
namespace {

/// Room for what a busy cpu does in a hundred milliseconds, within what a tracer may take of a host.
std::size_t default_buffer_bytes() {
  constexpr std::size_t for_each_cpu = 1 << 20, least = 4 << 20, most = 64 << 20;
  return std::clamp<std::size_t>(for_each_cpu * std::thread::hardware_concurrency(), least, most);
}

LiveOptions live_options(const Options& options) {
  LiveOptions live;
  live.discovery = {
      .filter = {.pids = options.pids, .name_globs = options.names, .only_followed = !options.command.empty()},
      .history = options.history,
      .forced_version = options.ocaml_version};
  live.programs.sched = options.sched == Sched::off   ? RTEV_SCHED_OFF
                        : options.sched == Sched::all ? RTEV_SCHED_ALL
                                                      : RTEV_SCHED_OCAML;
  live.programs.save_rings = options.drain == Drain::off   ? RTEV_SAVE_OFF
                             : options.drain == Drain::all ? RTEV_SAVE_ALL
                                                           : RTEV_SAVE_KNOWN;
  live.programs.sched_buffer_bytes = options.buffer_bytes.value_or(default_buffer_bytes());
  live.programs.follow = !options.command.empty();
  if (options.ringless) live.ringless = kernel::RinglessOptions{.limit = options.ringless_limit};
  live.duration = options.duration;
  live.command_line = options.arguments;
  return live;
}

/// For scripts and tests that must not start their programs too early: RTEV_READY_FD names a descriptor that gets a
/// line once everything is attached.
void announce_ready() {
  const char* text = std::getenv("RTEV_READY_FD");
  if (text == nullptr) return;
  int fd = -1;
  std::from_chars(text, text + std::strlen(text), fd);
  constexpr std::string_view line = "ready\n";
  [[maybe_unused]] const ssize_t put = ::write(fd, line.data(), line.size());
}

void announce_start(const Options& options, const Registry& registry) {
  if (options.quiet || !options.command.empty()) return;
  const auto probed = std::ranges::count(registry.processes(), RingState::probed, &ProcessInfo::ring);
  const auto with_ring = std::ranges::count_if(registry.processes(),
                                               [](const ProcessInfo& facts) { return facts.ring != RingState::none; }) -
                         probed;
  const auto all = std::ranges::distance(registry.processes());
  fmt::print(stderr, "Tracing: {} OCaml 5 process{} now, {} with runtime events on{}.{}\n", all, all == 1 ? "" : "es",
             with_ring, probed == 0 ? "" : fmt::format(", {} probed", probed),
             options.duration ? "" : " Ctrl-C to end.");
  if (with_ring == 0 && !options.ringless)
    fmt::print(stderr,
               "hint: programs write events when they are started with OCAML_RUNTIME_EVENTS_START=1; "
               "--ringless traces those that are not\n");
}

void explain_missing_probes(const kernel::UprobeManager& probes) {
  if (probes.failed() + probes.skipped() == 0) return;
  const auto error = probes.last_error();
  fmt::print(stderr, "rtev-bpf: pauses and resumes of some programs may be missing: {} not be probed{}\n",
             probes.failed() > 0 ? fmt::format("{} binaries could", probes.failed())
                                 : fmt::format("{} functions could", probes.skipped()),
             error ? ": " + error->message() : "");
}

/// Who waits for the end of a tracer that has said its last word wants to know why.
void explain_slow_end(const kernel::UprobeManager& probes) {
  constexpr std::size_t worth_a_line = 3;
  if (const std::size_t binaries = probes.slow_to_detach(); binaries >= worth_a_line)
    fmt::print(stderr,
               "rtev-bpf: taking away the probes of {} binaries, for which kernels before 6.6 need up to {} s\n",
               binaries, binaries);
}

void explain_unprobed(const Ringless* ringless) {
  if (ringless == nullptr || ringless->unprobed().processes() == 0) return;
  fmt::print(stderr, "rtev-bpf: {}", ringless->unprobed().text());
}

/// Why a command that has ended wrote no events, as far as that can be known; nothing if it did.
std::optional<std::string_view> reason_of_silence(const Options& options, const Output& output,
                                                  const Registry& registry) {
  const auto has_ring = [](const ProcessInfo& facts) { return facts.ring != RingState::none; };
  if (output.error() || options.duration || !options.names.empty()) return std::nullopt;
  if (std::ranges::any_of(registry.processes(), has_ring)) return std::nullopt;
  return std::ranges::empty(registry.processes()) ? "it ran no OCaml 5 program"
                                                  : "its OCaml runtime did not start them";
}

void explain_silence(const Command& command, std::string_view reason) {
  fmt::print(stderr, "rtev-bpf: {} wrote no runtime events: {}\n", escaped(command.arguments().front()), reason);
  fmt::print(stderr, "hint: events need OCaml 5 and are off in set-user-id programs\n");
}

/// OCaml's runtime ends a program that is to write events and cannot.
void explain_aborted(std::uint64_t programs, const Command& command) {
  if (programs == 0 || command.ring_directory().empty()) return;
  fmt::print(stderr,
             "rtev-bpf: {} OCaml program{} ended by SIGABRT without a ring: the runtime does that where it cannot make "
             "one in {}, which belongs to the user of {} and is not in other roots\n"
             "hint: set OCAML_RUNTIME_EVENTS_DIR to a directory that all of them see and may write, for rtev-bpf too\n",
             programs, programs == 1 ? " was" : "s were", command.ring_directory(),
             escaped(command.arguments().front()));
}

/// Who is left of a command that has ended.
void explain_survivors(const Command& command) {
  const auto& pids = command.survivors();
  constexpr std::size_t most_named = 5;
  std::string names;
  for (const std::int32_t pid : pids | std::views::take(most_named)) {
    const auto stat = Procfs().stat(pid);
    names += fmt::format(" {}{}", pid, stat ? fmt::format(" ({})", escaped(stat->comm)) : "");
  }
  fmt::print(stderr,
             "rtev-bpf: {} process{} that {} started go{} on, and {} not traced any more:{}{}\n"
             "hint: rtev-bpf -p PID traces them; their rings stay in {}\n",
             pids.size(), pids.size() == 1 ? "" : "es", escaped(command.arguments().front()),
             pids.size() == 1 ? "es" : "", pids.size() == 1 ? "is" : "are", names,
             pids.size() > most_named ? " ..." : "", command.ring_directory());
}

/// Passes signals on to a command until it has ended, also when the trace has ended before.
int await(Command& command, StopSignal& stop, const std::function<void(int)>& pass_on) {
  while (true) {
    pollfd wait[] = {{.fd = command.ended_fd(), .events = POLLIN, .revents = 0},
                     {.fd = stop.event_fd(), .events = POLLIN, .revents = 0}};
    ::poll(wait, std::size(wait), -1);
    if (wait[0].revents != 0) return command.wait();
    while (const int signal_number = stop.take()) pass_on(signal_number);
  }
}

Result<void> check_pids(const Options& options) {
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

int trace(const Options& options, const Tracing& tracing) {
  kernel::set_libbpf_verbose(options.verbose);
  if (auto exist = check_pids(options); !exist) return report(exist.error());
  // Forked before any thread exists; it waits at its gate.
  std::optional<Command> command;
  if (!options.command.empty()) {
    if (auto exists = Command::check(options.command.front()); !exists) {
      report(exists.error());
      return Command::not_found;
    }
    auto prepared =
        Command::prepare(options.command, tracing.owns_stdout ? Command::Stdout::to_stderr : Command::Stdout::own);
    if (!prepared) return report(prepared.error());
    command.emplace(std::move(*prepared));
  }

  std::optional<StopSignal> stop(std::in_place, command ? &*command : nullptr);
  auto session = LiveSession::start(live_options(options), tracing.sink, tracing.output, *stop);
  if (!session) return report(session.error());
  announce_start(options, (*session)->registry());
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
      // Ctrl-C has reached the command already: it is in the terminal's foreground, too.
      if (!stop->from_terminal()) command->send(signal_number);
    };
  }
  const RunSummary summary = (*session)->run(until);
  tracing.conclude(summary, (*session)->registry());
  if (!options.quiet) {
    explain_missing_probes((*session)->probes());
    explain_slow_end((*session)->probes());
    explain_unprobed((*session)->ringless());
    if (command) explain_aborted((*session)->aborted_without_ring(), *command);
  }
  const auto silence = reason_of_silence(options, tracing.output, (*session)->registry());
  session->reset();
  if (!command) return exit_ok;
  const int status = await(*command, *stop, until.on_signal);
  if (options.quiet) return status;
  if (!command->survivors().empty())
    explain_survivors(*command);
  else if (silence)
    explain_silence(*command, *silence);
  return status;
}

}  // namespace rtev::cli
