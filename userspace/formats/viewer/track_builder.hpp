// SPDX-License-Identifier: MIT
// Decides which track each event is shown on, and makes the spans of a track nest.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "formats/viewer/trace_writer.hpp"
#include "formats/viewer/track_table.hpp"
#include "stream/span_stack.hpp"
#include "stream/thread_tracker.hpp"

namespace rtev {

/// Turns the stream into calls of a TraceWriter. A GC span is shown on the thread that ran it, as far as scheduler
/// events say. Viewers require the spans of a track to nest: spans cut by a loss or an exit are closed, and spans whose
/// begin is unknown are opened, each with a SpanMark. Memory is bounded. One thread.
class TrackBuilder final : private ThreadObserver {
 public:
  explicit TrackBuilder(TraceWriter& writer)
      : writer_(writer), tracks_(writer, [this](const Track& track) { forget(track); }) {}
  TrackBuilder(const TrackBuilder&) = delete;
  TrackBuilder& operator=(const TrackBuilder&) = delete;

  void consume(const Batch& batch, const Registry& registry);
  /// Closes all open spans. Nothing may follow.
  void finish(std::uint64_t end_ns, const Registry& registry);

  /// As of the event in hand.
  const ThreadTracker& threads() const { return threads_; }

 private:
  /// The spans open on a track, outermost first, by the events that began them.
  struct Stack {
    const Track* track;
    SpanStack open;
  };
  /// A ring: one incarnation of a domain after the other.
  struct Ring {
    ProcessIndex process = 0;
    std::int32_t pid = 0;
    std::uint16_t domain = 0;
    std::uint16_t leader_phase = 0, handler_phase = 0;  ///< of stop-the-world sections
    std::uint16_t wait_phase = 0;                       ///< in which a thread waits without the domain's lock
    std::uint64_t checked = 0;                          ///< the batch in which it was last compared with the registry
    bool has_ended = false;                             ///< the domain, and no next incarnation has begun
    std::uint32_t incarnation = 1;                      ///< of the domain
    std::vector<std::unique_ptr<Stack>> stacks{};
    Stack* current = nullptr;           ///< where its events are shown now
    std::uint64_t threads_version = 0;  ///< by which `current` was decided
    Stack* phases = nullptr;            ///< where the last runtime phase began or ended
    std::size_t open_phases = 0;
    std::uint64_t newest = 0;   ///< time of its last event; 0 before the first of an incarnation
    std::uint64_t floor = 0;    ///< spans whose begin is unknown begin before this
    std::uint64_t barrier = 0;  ///< and after this
  };
  /// The stop-the-world sections of a process.
  struct Process {
    std::vector<std::uint32_t> sources{};  ///< of its rings
    std::uint64_t first_flow = 0;          ///< of the last section: the arrow to domain d is first_flow + d
    std::vector<std::uint16_t> called{};   ///< domains that the last section has arrows for
  };
  /// Which ring uses the track of a thread: one at a time.
  struct Owner {
    const Ring* ring;     ///< null: none
    std::uint64_t since;  ///< 0 for the first ring
  };
  struct Recent {
    std::uint32_t source = 0;
    Ring* ring = nullptr;
  };
  struct Ended {
    std::uint64_t time;
    ProcessIndex process;
    std::int32_t pid;
  };

  void add(const EventContext& context);
  void ring_event(const EventContext& context);
  Ring& ring_of(const Event& event, const Registry& registry);
  void renew(Ring& ring, const Event& event, const Registry& registry);
  Stack& place(Ring& ring);
  static bool waits(const Ring& ring);
  Stack& stack_on(Ring& ring, const Track& track);
  void begin(Ring& ring, const EventContext& context);
  void end(Ring& ring, const EventContext& context);
  void end_outer(Ring& ring, Stack& stack, std::size_t at, const EventContext& context);
  void end_unknown(Ring& ring, Stack& stack, const EventContext& context);
  std::vector<Event> interrupt(Ring& ring, Stack& stack, std::size_t down_to, const EventContext& context,
                               SpanMark mark);
  void resume(Ring& ring, Stack& stack, const std::vector<Event>& spans, const EventContext& context);
  Flows flows_of(const Ring& ring, const Event& event);
  void lifecycle(Ring& ring, const EventContext& context);
  void lost(Ring& ring, const EventContext& context);
  void close_all(Ring& ring, std::uint64_t time, const Registry& registry, SpanMark mark);
  bool own(const Ring& ring, const Track& track);
  void disown(const Ring& ring);
  static void begin_at(Ring& ring, std::uint64_t time);
  void restart(Ring& ring, std::uint64_t time);
  void process_event(const EventContext& context);
  std::uint64_t in_order(std::uint64_t time) { return sched_now_ = std::max(sched_now_, time); }
  void sched_switch(const EventContext& context);
  void on_thread_interval(const ThreadInterval& interval) override;
  void on_cpu_interval(const CpuInterval& interval) override;
  void on_left_unseen(std::uint32_t cpu, const RunningThread& running, std::uint64_t time_ns) override;
  void wakeup(const EventContext& context);
  void dropped(const EventContext& context);
  void end_image(ProcessIndex process, std::uint64_t time, const Registry& registry, SpanMark mark);
  void forget_ended(std::uint64_t now, const Registry& registry);
  void forget(const Track& track);

  TraceWriter& writer_;
  const Registry* registry_ = nullptr;  ///< of the batch in hand
  TrackTable tracks_;
  /// It gets late scheduler events at the newest time, where they are shown, and it does not get losses: a viewer shows
  /// what was seen, up to the switch that contradicts it.
  ThreadTracker threads_{this};
  std::unordered_map<std::uint32_t, std::unique_ptr<Ring>> rings_;  ///< by source
  std::unordered_map<ProcessIndex, Process> processes_;
  std::unordered_map<std::uint32_t, Owner> owners_;  ///< of threads' tracks, by track id
  std::deque<Ended> ended_;                          ///< their tracks are kept for late events
  std::array<Recent, 64> recent_{};                  ///< by the low bits of the source
  std::uint64_t batch_ = 0;
  std::uint64_t now_ = 0;        ///< newest time seen
  std::uint64_t sched_now_ = 0;  ///< newest time of a switch or wakeup
  std::uint64_t next_flow_ = 1;
  std::vector<std::uint64_t> flow_ids_;
};

}  // namespace rtev
