// SPDX-License-Identifier: MIT
// One run of the tracer: kernel records and rings in, one ordered stream to a sink out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"
#include "session/live/live_sources.hpp"
#include "session/live/stream_output.hpp"
#include "session/live/watermark.hpp"
#include "session/stop_signal.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"
#include "stream/timeline.hpp"

namespace rtev {

/// Reads, merges and releases events on the thread that calls run().
class LiveSession {
 public:
  /// Gives the sink its header and looks at what runs already. `helper` was started before the programs were loaded.
  static std::unique_ptr<LiveSession> start(const LiveOptions& options, AttachedPrograms attached,
                                            const helper::HelperProcess& helper, Sink& sink, const Output& output,
                                            StopSignal& stop);

  /// With ProcessFilter::only_followed: follows this process and its descendants.
  Result<void> follow(std::int32_t pid) { return sources_.follow(pid); }

  /// Ways to end besides the duration and an output that fails.
  struct Until {
    int readable_fd = -1;  ///< end when this becomes readable
    /// Called for each signal that StopSignal returns; without it the first one ends the session.
    std::function<void(int)> on_signal{};
    /// End when this is true, without reading what is left: the output has no room for it.
    std::function<bool()> is_full{};
  };
  /// Runs, then drains the sources, flushes and gives the sink its summary.
  RunSummary run(const Until& until);

  /// False if the start did not wait any longer for all processes of the host to be inspected.
  bool found_everything() const { return found_everything_; }
  const Registry& registry() const { return registry_; }
  const LiveSources& sources() const { return sources_; }

 private:
  LiveSession(const LiveOptions& options, AttachedPrograms attached, const helper::HelperProcess& helper, Sink& sink,
              const Output& output, StopSignal& stop);

  void settle();
  RunSummary figures();
  RunSummary finish(LiveSources::Rest rest);
  void tick();
  void sleep();
  void wake_on(int fd) const;
  bool should_end(const Until& until);
  bool have_pids_ended(std::uint64_t now_ns);
  std::optional<std::uint64_t> end_ns() const;

  LiveOptions options_;
  Sink& sink_;
  const Output& output_;
  StopSignal& stop_;
  std::uint64_t start_ns_;
  Registry registry_;
  Timeline timeline_;
  StreamOutput stream_;
  LiveSources sources_;
  Watermark watermark_;
  UniqueFd epoll_;
  bool found_everything_ = false;
  bool wakeup_armed_ = false;
  std::uint64_t last_pid_check_ns_ = 0;
};

}  // namespace rtev
