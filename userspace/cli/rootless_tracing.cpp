// SPDX-License-Identifier: MIT
#include "cli/rootless_tracing.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/capabilities.hpp"
#include "base/proc_files.hpp"
#include "cli/messages.hpp"
#include "cli/trace_run.hpp"
#include "helper/closers.hpp"
#include "kernel/perf_stacks.hpp"
#include "session/command/private_dir.hpp"
#include "session/command/sudo_user.hpp"
#include "session/confinement.hpp"
#include "session/live/thread_priority.hpp"
#include "session/rootless/rootless_sources.hpp"

namespace rtev::cli {
namespace {

/// An error if nothing is selected that can be traced.
Result<void> check_selection(const TraceOptions& options, const Invocation& invocation,
                             const kernel::HostFeatures& host) {
  if (traces_command(options, invocation)) return {};
  if (options.pids.empty()) {
    const kernel::Feature* const feature = host.blocking();
    return std::unexpected(
        Error{.what = "cannot trace this host",
              .why = feature->name + ": " + feature->found,
              .hint = fmt::format("{}\nhint: programs of your own need {}: rtev-bpf -- CMD starts one, rtev-bpf -p PID "
                                  "traces one that runs{}",
                                  feature->hint, host.is_root ? "no capability" : "no root",
                                  host.lacks_capabilities && !host.is_root
                                      ? "\nhint: to trace this host without root, once: " + kernel::setcap_command()
                                      : "")});
  }
  for (const std::int32_t pid : options.pids) {
    // /proc shows a process as root's if its user may not look into it.
    struct stat status{};
    const std::string path = fmt::format("/proc/{}", pid);
    const auto [directory, name] = proc_place(path);
    const bool is_shown = ::fstatat(directory, name, &status, 0) == 0;
    // With hidepid /proc shows users only their own ones.
    const bool is_hidden = !is_shown && errno == ENOENT && ::kill(pid, 0) != 0 && errno == EPERM;
    const bool is_own = is_shown && (status.st_uid == ::geteuid() || has_capability(CAP_SYS_PTRACE));
    if (is_own || (!is_shown && !is_hidden)) continue;
    return std::unexpected(Error{.what = "cannot trace process",
                                 .subject = std::to_string(pid),
                                 .why = is_hidden ? "it belongs to another user, and /proc does not show it"
                                                  : "it belongs to " + name_of_user(status.st_uid),
                                 .hint = host.is_root ? hint_for_capability("CAP_SYS_PTRACE", true)
                                                      : "without root, only processes of your own can be traced"});
  }
  return {};
}

/// Where a command's rings are.
std::optional<FollowedCommand> followed(const std::optional<Command>& command) {
  if (!command) return std::nullopt;
  FollowedCommand followed{.pid = command->pid(),
                           .name = command->program_name(),
                           .directory = command->ring_directory(),
                           .is_private = !command->ring_directory().empty(),
                           .keeps_rings = command->keeps_rings()};
  if (!followed.is_private) followed.directory = std::getenv(ring_directory_variable);
  return followed;
}

/// What these stacks lack, of those that BPF takes.
std::string stacks_without_bpf_message(const StackOptions& options, bool sees_kernel_time) {
  std::string text =
      "rtev-bpf: stacks are taken without BPF: above C code, which has a stack of its own, they have no "
      "OCaml functions";
  if (options.off_cpu) text += "; none are taken of threads that sleep, or where they allocate";
  if (!sees_kernel_time)
    text += "; time in the kernel is in no figure\nhint: kernel.perf_event_paranoid=1 allows to sample the kernel, too";
  return text + "\n";
}

/// "without CAP_BPF"
std::string missing_right(const kernel::HostFeatures& host) {
  if (host.lacks_capabilities && !host.is_root) return "without root";
  const std::string& missing = host.blocking()->name;
  return missing.starts_with("CAP_") ? "without " + missing : "here";
}

}  // namespace

int trace_without_bpf(const TraceOptions& options, const Invocation& invocation, const Tracing& tracing,
                      const kernel::HostFeatures& host, StopSignal& stop) {
  if (auto selects = check_selection(options, invocation, host); !selects) return report(selects.error());
  std::unique_ptr<kernel::PerfStacks> stacks;
  if (options.stacks.on_cpu) {
    // Its programs have capabilities, and the tracer gives its own up: the kernel would refuse each of them.
    if (host.is_root) {
      const kernel::Feature* const feature = host.blocking();
      return report(
          Error{.what = "cannot take stacks of root's programs without BPF",
                .why = feature->name + ": " + feature->found,
                .hint = feature->hint + "\nhint: those of another user's programs need none: run it as that user"});
    }
    auto opened = kernel::PerfStacks::open(options.stacks.rate_hz);
    if (!opened) return report(opened.error());
    stacks = std::move(*opened);
    if (!options.quiet) say(stacks_without_bpf_message(options.stacks, stacks->sees_kernel_time()));
  }
  const auto ready_fd = take_ready_fd();
  // Before there are threads.
  const auto helper = helper::HelperProcess::start(helper::HelperProcess::Rights::all);
  if (!helper) return report(helper.error());
  auto command = prepare_command(options, invocation, tracing, *helper, Command::RingFiles::kept);
  if (!command) return command.error();
  if (!options.quiet && options.sched != RTEV_SCHED_OFF && !tracing.samples_threads)
    say(
        fmt::format("rtev-bpf: scheduler events and threads' states are unknown {}\n"
                    "hint: rtev-bpf doctor says how to allow them; --sched off does without them\n",
                    missing_right(host)));
  if (*command) stop.accompany(**command);
  const SessionOptions session = session_options(options, invocation, tracing);
  raise_thread_priority(options.priority);
  if (auto confined = confine_reader(stacks ? ReaderMay::sample : ReaderMay::read); !confined)
    return report(confined.error());
  const helper::Closers closers(*helper);
  return run_session({.options = options,
                      .tracing = tracing,
                      .helper = *helper,
                      .command = *command ? &**command : nullptr,
                      .stop = stop,
                      .ready_fd = ready_fd,
                      .needed = {needed_helper(*helper)},
                      .session = LiveSession::start(
                          session, false,
                          [&](const Sources::StreamParts& stream) {
                            return std::make_unique<RootlessSources>(
                                session, stream, *helper,
                                traces_command(options, invocation) ? followed(*command) : std::nullopt,
                                tracing.samples_threads, std::move(stacks));
                          },
                          tracing.sink, tracing.output, stop),
                      .follow = [](std::int32_t) { return Result<void>(); },
                      .explain_end = [](const Command*) { return false; },
                      .end = [] {}});
}

}  // namespace rtev::cli
