// SPDX-License-Identifier: MIT
// One run of the tracer: what all subcommands do that trace.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>
#include <vector>

#include "cli/options.hpp"
#include "session/live/live_session.hpp"
#include "stream/event_kinds.hpp"
#include "stream/sink.hpp"

namespace rtev::cli {

inline constexpr std::chrono::milliseconds terminal_delay{20}, pipe_delay{50}, file_delay{250};

/// Where the stream goes.
struct Tracing {
  Sink& sink;
  const Output& output;      ///< its failure ends the run
  bool owns_stdout = false;  ///< the stdout of CMD goes to stderr: see is_data_on_stdout()
  /// How old events may be when they are written. Reports and files are not read while they are written.
  std::chrono::nanoseconds max_delay = file_delay;
  /// True when the output has no room for more, which ends the run. Empty: never.
  std::function<bool()> is_full{};
  bool samples_threads = false;  ///< if lacks_bpf(): see RootlessSources
  EventKinds unused{};           ///< see SessionOptions
  /// The output needs the switches of pauses only, and sums of what threads use: EventKind::usage.
  bool sums_usage = false;
  bool shows_services = false;  ///< the output has the services of processes: to ask for them takes time
  std::vector<LiveSession::Watched> watched{};
  std::function<void()> on_ready{};  ///< everything that runs is traced
  /// Called, after it was said, when a process of the run has ended that cannot be started again.
  std::function<void(std::string_view name)> on_lost{};
  bool is_service = false;      ///< to have seen no process is no failure
  bool adopts_enabled = false;  ///< see enable::EnablerOptions
  /// True if another run takes care of what this one has switched on. Empty: never.
  std::function<bool()> leaves_enabled{};
};

/// From now on a signal requests the end of the trace that follows: what is made for it before, such as a file, is
/// removed again. trace() does it itself if it was not done.
void catch_signals();

/// Traces until the duration ends, a signal arrives, CMD exits or the output fails. Returns the exit status, that of
/// CMD if there is one. An error of the output is not reported.
int trace(const TraceOptions& options, const Invocation& invocation, const Tracing& tracing);

/// True if a trace with these options reads rings only, since BPF is denied.
bool lacks_bpf(const TraceOptions& options);

}  // namespace rtev::cli
