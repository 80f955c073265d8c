// SPDX-License-Identifier: MIT
// What a trace for viewers is made of, and what each format for viewers implements to write it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rtev/event.hpp"
#include "stream/records.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// A row in a viewer: a thread, or a domain's ring where it is not known which thread writes it.
struct Track {
  std::uint32_t id = 0;      ///< never re-used, 1 and up
  ProcessIndex process = 0;  ///< 0 for threads of other programs
  std::int32_t pid = 0;
  std::int32_t tid = 0;           ///< real, or from first_ring_tid on for a ring's own track
  std::int32_t domain = -1;       ///< -1 where not known or none
  std::uint32_t incarnation = 1;  ///< of the domain, for ids are used again; told by its ring
  ThreadRole role = ThreadRole::unknown;
  bool is_thread = true;  ///< false: stands for a ring
  std::string name{};     ///< "domain 0", "domain 1 backup", or the thread's own name; any bytes
};

/// Beyond every real tid (PID_MAX_LIMIT is 2^22), and within the 31 bits that all viewers keep.
inline constexpr std::int32_t first_ring_tid = 1 << 30;

/// Why a begin or an end is drawn that is no event of the stream.
enum class SpanMark : std::uint8_t {
  began_before,  ///< begin: its event is not known: it came before the recording, or was lost
  resumed,       ///< begin: goes on after a span was closed that did not nest with it
  interrupted,   ///< end: a span ended that does not nest with it; resumed at once
  lost,          ///< end: words of its ring were lost, its end may be among them
  domain_ended,  ///< end: the domain ended without it
  exited,        ///< end: the process ended or went on with another program
  cut,           ///< end: the recording ends
};
std::string_view to_string(SpanMark mark);

/// Arrows that leave or reach a span at its beginning. Ids are unique within a recording.
struct Flows {
  std::span<const std::uint64_t> out{};  ///< leader of a stop-the-world section: one for each domain that may take part
  std::uint64_t in = 0;                  ///< one that takes part: where it was called from; 0 for none
};

/// Where something happens in the stream: an event with all that is needed to name it. Valid during the call.
struct EventContext {
  const Event& event;
  const Batch& batch;
  const Registry& registry;
};

/// Gets each event of the stream once, in order (first group), and between them what completes the picture (second and
/// third group). On each track the begins and ends of both groups nest properly by time and order.
class TraceWriter {
 public:
  virtual ~TraceWriter() = default;

  virtual void begin(const Track& track, const EventContext& context, const Flows& flows) = 0;
  /// Ends the innermost open span of the track.
  virtual void end(const Track& track, const EventContext& context) = 0;
  /// An end that could not be drawn as one, for want of a place for its begin.
  virtual void stray_end(const Track& track, const EventContext& context) = 0;
  virtual void counter(const Track& track, const EventContext& context) = 0;
  /// Something without duration: user events, lifecycle, allocations.
  virtual void point(const Track& track, const EventContext& context) = 0;
  virtual void lost(const Track& track, const EventContext& context, const Loss& loss) = 0;
  /// Scheduler events that are missing: they may have been of any thread, and belong to no track.
  virtual void dropped(const EventContext& context, const Loss& loss) = 0;
  /// The track is that of the process's main thread.
  virtual void process(const Track& track, const EventContext& context, const ProcessRecord& record) = 0;
  /// Tracks are null for the idle thread.
  virtual void sched_switch(const EventContext& context, const SchedSwitch& change, const Track* prev,
                            const Track* next) = 0;
  virtual void wakeup(const EventContext& context, const Wakeup& wakeup, const Track* woken, const Track* by) = 0;
  /// An event whose payload is not what its kind promises, which only a broken recording has.
  virtual void malformed(const EventContext& context) = 0;

  /// `begun` is the event that began the span, or for SpanMark::began_before the one that ended it: it names it.
  virtual void open(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
                    SpanMark mark) = 0;
  virtual void close(const Track& track, std::uint64_t time, const Event& begun, const Registry& registry,
                     SpanMark mark) = 0;
  /// A thread was shown running on a cpu, left it, and nobody saw when: at this time at the latest as far as is known.
  virtual void left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track) = 0;

  /// Before the first use of a process or track, and when its name changes.
  virtual void name_process(std::int32_t pid, std::string_view name) = 0;
  virtual void name_track(const Track& track) = 0;
  /// It is not used any more.
  virtual void forget_track(const Track& track) = 0;
};

}  // namespace rtev
