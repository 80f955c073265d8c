// SPDX-License-Identifier: MIT
// One run of the tracer: sources in, one ordered stream to a sink out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/timed_tasks.hpp"
#include "base/unique_fd.hpp"
#include "session/live/sources.hpp"
#include "session/live/stream_output.hpp"
#include "session/live/watermark.hpp"
#include "session/stop_signal.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"
#include "stream/timeline.hpp"

namespace rtev {

/// Reads, merges and delivers events on the thread that calls run().
class LiveSession {
 public:
  using MakeSources = std::function<std::unique_ptr<Sources>(const Sources::StreamParts&)>;
  /// Makes the sources, gives the sink its header and looks at what runs already. `has_sched`: the sources report
  /// switches of threads. Null if it is to end already: then the sink has got nothing, and no file is begun.
  static std::unique_ptr<LiveSession> start(const SessionOptions& options, bool has_sched, const MakeSources& make,
                                            Sink& sink, const Output& output, StopSignal& stop);

  /// A descriptor of others, for which a function is called when it is readable (epoll).
  struct Watched {
    int fd;
    std::function<void()> on_readable;
    bool once = false;  ///< not called again, though it stays readable
  };

  /// Ways to end besides the duration and an output that fails.
  struct Until {
    int readable_fd = -1;  ///< end when this becomes readable
    /// Called for each signal that StopSignal returns; without it the first one ends the session.
    std::function<void(int)> on_signal{};
    /// End when this is true, without reading what is left: the output has no room for it.
    std::function<bool()> is_full{};
    std::vector<Watched> watched{};
  };
  /// Runs, then drains the sources, flushes and gives the sink its summary.
  RunSummary run(const Until& until);

  /// False as long as some processes that ran at the start are still to be inspected: the start does not wait for long.
  bool found_everything() const { return found_everything_; }
  const Registry& registry() const { return registry_; }

 private:
  LiveSession(const SessionOptions& options, bool has_sched, const MakeSources& make, Sink& sink, const Output& output,
              StopSignal& stop);

  void settle();
  RunSummary figures();
  RunSummary finish(Sources::Rest rest);
  void tick();
  void sleep(const Until& until);
  void wake_on(int fd, bool once = false) const;
  bool should_end(const Until& until);
  bool have_pids_ended(std::uint64_t now_ns);
  std::optional<std::uint64_t> end_ns() const;

  SessionOptions options_;
  Sink& sink_;
  const Output& output_;
  StopSignal& stop_;
  std::uint64_t start_ns_;
  TimedTasks tasks_;
  TimedTask ending_{tasks_};  ///< after the duration
  Registry registry_;
  Timeline timeline_;
  StreamOutput stream_;
  std::unique_ptr<Sources> sources_;
  Watermark watermark_;
  UniqueFd epoll_;
  std::uint64_t settled_ns_ = 0;  ///< when the start was over
  bool found_everything_ = false;
  bool wakeup_armed_ = false;
  std::uint64_t last_pid_check_ns_ = 0;
};

}  // namespace rtev
