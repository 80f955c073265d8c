// SPDX-License-Identifier: MIT
// What a live session reads, with BPF or without.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/timed_tasks.hpp"
#include "processes/discovery_context.hpp"
#include "session/live/stream_output.hpp"
#include "session/live/watermark.hpp"
#include "stream/event_kinds.hpp"
#include "stream/records.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"
#include "stream/timeline.hpp"

namespace rtev {

/// How the memory that is spent on behalf of others is shared out; the rest is for reports. Bytes.
struct MemoryShares {
  explicit MemoryShares(std::size_t limit) : staged_events(limit / 8 * 3), rings(limit / 4), saved_rings(limit / 8) {}

  std::size_t staged_events, rings, saved_rings;
};

/// What a live session traces, and for how long.
struct SessionOptions {
  DiscoveryOptions discovery;
  std::optional<std::chrono::nanoseconds> duration;
  std::size_t memory_limit = std::size_t{256} << 20;  ///< bytes, see MemoryShares
  /// How old events may be when they are delivered: what the output needs.
  std::chrono::nanoseconds max_delay{std::chrono::milliseconds(20)};
  /// Kinds of ring events that the output does not use: they are read, and do not get into the stream.
  EventKinds unused{};
  std::vector<std::string> command_line;  ///< for the header
};

/// Stages what it reads in the timeline. Used from one thread.
class Sources {
 public:
  /// Where events go. Must outlive the sources.
  struct StreamParts {
    Registry& registry;
    Timeline& timeline;
    StreamOutput& output;
    TimedTasks& tasks;       ///< run before each collect()
    std::uint64_t start_ns;  ///< of the session

    /// What the tracer does about an earlier event (it opens a ring that was announced) follows what is delivered.
    void push(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) const {
      if (is_of_tracer(action)) time_ns = std::max(time_ns, timeline.last_time());
      timeline.push(time_ns, Source{0, lifecycle_stream}, EventKind::process, static_cast<std::uint16_t>(action),
                    record);
    }
  };

  virtual ~Sources() = default;

  /// Begins to look at all running processes that may be traced.
  virtual void begin_scan(std::uint64_t now_ns) = 0;
  /// Looks at a few more of them.
  virtual void scan_some() = 0;

  /// How far a collect() came.
  struct Collected {
    std::uint64_t now_ns;
    std::uint64_t read_until_ns;  ///< all sources have been read up to this time, as far as holds() allows
  };
  /// Reads what there is from all sources. What has to be done later is a task of the stream's.
  virtual Collected collect() = 0;
  /// Why events are held back after a collect().
  virtual Watermark::Holds holds(std::uint64_t read_until_ns) = 0;
  /// What is done with events that are still in rings at the end: unread words are counted.
  enum class Rest : std::uint8_t { is_read, stays };
  /// Ends all sources when the session ends, and gives the registry its last figures.
  virtual void drain(Rest rest) = 0;
  /// Gives the registry the words of all rings up to now.
  virtual void update_registry() = 0;
  /// Adds the numbers of dropped records and missed rings.
  virtual void add_figures(RunSummary& summary) const = 0;

  /// True while a scan goes on, and while binaries are being inspected or probed.
  virtual bool is_inspecting() const = 0;
  /// Descriptors that become readable (epoll) when collect() should be called.
  virtual std::vector<int> event_fds() const = 0;
  /// Waits for so many milliseconds, or until a binary is inspected.
  virtual void await_inspected(int timeout_ms) const = 0;
  /// True if traced processes run, as far as the last collect() found.
  virtual bool any_runs() const = 0;
  /// True if the last collect() took records of processes: their events are to be delivered soon.
  virtual bool has_news() const = 0;
  /// True if the last collect() left records of the scheduler.
  virtual bool is_behind() const = 0;
  /// Has the next activity of a traced process make one of event_fds() readable. While processes run, only rings that
  /// fill up do.
  virtual void wake_if_active() = 0;
};

}  // namespace rtev
