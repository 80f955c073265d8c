// SPDX-License-Identifier: MIT
// Tracks, spans and points in time, as viewers show them, and the interface of the formats that write them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rtev/event.hpp"
#include "stream/records.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"
#include "stream/span_tracker.hpp"
#include "stream/thread_interval.hpp"

namespace rtev {

/// A row in a viewer: a thread, the ring of a domain while it is unknown which thread writes it, or a task: a fiber.
struct Track {
  std::uint32_t id = 0;      ///< never used again, from 1 on
  ProcessIndex process = 0;  ///< 0 for threads of other programs
  std::int32_t pid = 0;
  /// Of the thread; from first_ring_tid on for a track of a ring, from first_task_tid on for one of a task.
  std::int32_t tid = 0;
  std::int32_t domain = -1;       ///< -1: unknown or none
  std::uint32_t incarnation = 1;  ///< of the domain, whose id is used again
  ThreadRole role = ThreadRole::unknown;
  bool is_thread = true;  ///< false: of a ring or task
  bool is_task = false;
  std::string name{};  ///< "domain 0", "domain 1 backup", or the thread's own name; any bytes
};

/// Above every tid of Linux (PID_MAX_LIMIT is 2^22), and within the 31 bits that all viewers keep.
inline constexpr std::int32_t first_ring_tid = 1 << 30;
inline constexpr std::int32_t first_task_tid = 1 << 29, last_task_tid = first_ring_tid - 1024;
/// Arrows between tasks have numbers from here on, within those that JSON keeps exactly.
inline constexpr std::uint64_t first_task_flow = std::uint64_t{1} << 52;

/// Arrows that leave or reach a span at its begin. Ids are unique within a trace.
struct Flows {
  /// Leader of a stop-the-world section: one for each domain that may follow. Task: one for each task it creates.
  std::span<const std::uint64_t> out{};
  std::uint64_t in = 0;  ///< domain that follows, task that was created: the arrow to it; 0: none
};

/// What a task did for a time.
struct TaskSpan {
  std::string_view name{};  ///< any bytes, and not empty
  std::uint64_t begin_ns = 0, end_ns = 0;
  Flows flows{};
  // Of the first span of a task, as far as it is known.
  std::optional<std::int64_t> creator{};
  std::string_view context{};
};

/// What TrackBuilder calls: each event of the stream once, in order (first group), and between them what viewers need
/// besides (second and third group). On each track the begins and ends of both groups nest by time and order.
class TraceWriter {
 public:
  virtual ~TraceWriter() = default;

  virtual void begin(const Track& track, const EventContext& context, const Flows& flows) = 0;
  /// Ends the innermost open span of the track.
  virtual void end(const Track& track, const EventContext& context) = 0;
  /// An end without a begin, where there is no room for one before it.
  virtual void stray_end(const Track& track, const EventContext& context) = 0;
  virtual void counter(const Track& track, const EventContext& context) = 0;
  /// An event without duration: user, lifecycle, allocations.
  virtual void point(const Track& track, const EventContext& context) = 0;
  virtual void lost(const Track& track, const EventContext& context, const Loss& loss) = 0;
  /// Scheduler events that the kernel dropped: they may be of any thread, and belong to no track.
  virtual void dropped(const EventContext& context, const Loss& loss) = 0;
  /// `track` is of the main thread of the process.
  virtual void process(const Track& track, const EventContext& context, const ProcessRecord& record) = 0;
  /// Tracks are null for the idle thread.
  virtual void sched_switch(const EventContext& context, const SchedSwitch& change, const Track* prev,
                            const Track* next) = 0;
  virtual void wakeup(const EventContext& context, const Wakeup& wakeup, const Track* woken, const Track* by) = 0;
  /// `track` is null where the thread has none yet.
  virtual void sample(const EventContext& context, const Sample& sample, const Track* track) = 0;
  /// An event whose payload does not fit its kind; only a damaged recording has one.
  virtual void malformed(const EventContext& context) = 0;

  /// `begun` names the span: the event that began it, or for SpanMark::began_before the one that ended it.
  virtual void open(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
                    SpanMark mark) = 0;
  virtual void close(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
                     SpanMark mark) = 0;
  /// A thread that was running on a CPU has left it by this time; its switch was not seen.
  virtual void left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) = 0;
  /// The next sched_switch() of this CPU has `thread` leave it at this time; the switch in which it entered was not
  /// seen.
  virtual void entered_unseen(std::uint64_t /*time*/, std::uint32_t /*cpu*/, const Thread& /*thread*/) {}
  /// What a thread did for a time, at its end, before the sched_switch() that ends it. Intervals of a thread do not
  /// overlap. Of threads that are not traced there is only their time on CPUs.
  virtual void thread_interval(const Track& /*track*/, const ThreadInterval& /*interval*/) {}

  /// At the end of the span. Spans of a track do not overlap.
  virtual void task_span(const Track& track, const TaskSpan& span) = 0;
  /// A task ended with an error, for example; `text` may be empty.
  virtual void task_point(const Track& track, std::uint64_t time, std::string_view name, std::string_view text) = 0;

  /// Before the first use of a process or track, and when its name changes.
  virtual void name_process(std::int32_t pid, std::string_view name) = 0;
  virtual void name_track(const Track& track) = 0;
  /// It is not used again.
  virtual void forget_track(const Track& track) = 0;
};

}  // namespace rtev
