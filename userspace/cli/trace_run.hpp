// SPDX-License-Identifier: MIT
// What a trace with BPF and one without have in common.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/options.hpp"
#include "cli/tracing.hpp"
#include "helper/helper_process.hpp"
#include "rtev/error.hpp"
#include "session/command/command.hpp"
#include "session/live/live_session.hpp"
#include "session/stop_signal.hpp"

namespace rtev::cli {

SessionOptions session_options(const TraceOptions& options, const Invocation& invocation, const Tracing& tracing);

/// The file descriptor that RTEV_READY_FD names, which CMD does not inherit. A line is written there when everything
/// that runs is traced.
std::optional<int> take_ready_fd();

/// An error if a process of -p does not exist.
Result<void> check_pids(const TraceOptions& options);

/// True if CMD is what is traced. With -p it only says how long: that process is traced while CMD runs.
bool traces_command(const TraceOptions& options, const Invocation& invocation);

/// CMD, if there is one, before there are threads: it is forked, and waits until it is started. The error is an exit
/// status, after it was explained.
std::expected<std::optional<Command>, int> prepare_command(const TraceOptions& options, const Invocation& invocation,
                                                           const Tracing& tracing, const helper::HelperProcess& helper,
                                                           Command::RingFiles files);

/// Of a run that a signal ended before tracing began: says so, unless a service was stopped. `command`: CMD, or empty.
void tell_interrupted(const TraceOptions& options, const Tracing& tracing, std::string_view command);
/// Its exit status. `command`: CMD, or null.
int status_of_interrupted(const Tracing& tracing, const Command* command, const StopSignal& stop);

/// A process that a run needs, and cannot start again once it has given up its rights.
struct NeededProcess {
  std::string_view name;
  int end_fd;              ///< readable (epoll) once it has ended
  std::string_view lacks;  ///< what is not done without it, as a sentence
};

/// The one of all runs.
NeededProcess needed_helper(const helper::HelperProcess& helper);

/// A session that is ready, and what belongs to it.
struct TraceRun {
  const TraceOptions& options;
  const Tracing& tracing;
  const helper::HelperProcess& helper;
  Command* command;  ///< null: there is none
  StopSignal& stop;
  std::optional<int> ready_fd;
  std::vector<NeededProcess> needed;
  std::unique_ptr<LiveSession> session;                  ///< null: interrupted before it began
  std::function<Result<void>(std::int32_t pid)> follow;  ///< traces CMD and its descendants
  /// Says what went wrong, apart from losses. True if it said why programs of the command have no ring.
  std::function<bool(const Command* command)> explain_end;
  std::function<void()> end;  ///< called without the session, before CMD is waited for
};

/// Runs it to its end, and CMD too. Returns the exit status.
int run_session(TraceRun run);

}  // namespace rtev::cli
