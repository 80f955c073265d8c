// SPDX-License-Identifier: MIT
// Decides which track each event is shown on, and makes the spans of a track nest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "formats/viewer/task_tracks.hpp"
#include "formats/viewer/trace_writer.hpp"
#include "formats/viewer/track_table.hpp"
#include "stream/span_tracker.hpp"
#include "stream/thread_tracker.hpp"

namespace rtev {

/// The spans of each track that shows events of the ring nest.
struct ViewerRing : SpanRing<const Track*> {
  Lane* current = nullptr;            ///< where its events are shown now
  std::uint64_t threads_version = 0;  ///< by which `current` was decided
  const Track* outdated = nullptr;    ///< its own track in the incarnation before
  Lane* phases = nullptr;             ///< where the last runtime phase began or ended
  std::uint64_t floor = 0;            ///< spans whose begin is unknown begin before this; 0: no event yet
  std::uint64_t barrier = 0;          ///< and after this
  std::uint64_t named = 0;            ///< the batch in which the name of its process was last compared
};

/// Turns the stream into calls of a TraceWriter. A GC span is shown on the thread that ran it, as far as scheduler
/// events say. Viewers require the spans of a track to nest: spans cut by a loss or an exit are closed, and spans whose
/// begin is unknown are opened, each with a SpanMark. Memory is bounded. One thread.
class TrackBuilder final : private ThreadObserver, private SpanObserver<ViewerRing> {
 public:
  explicit TrackBuilder(TraceWriter& writer)
      : writer_(writer), tracks_(writer, [this](const Track& track) { forget(track); }) {}
  TrackBuilder(const TrackBuilder&) = delete;
  TrackBuilder& operator=(const TrackBuilder&) = delete;
  ~TrackBuilder() override;

  void consume(const Batch& batch, const Registry& registry);
  /// Closes all open spans. Nothing may follow.
  void finish(std::uint64_t end_ns, const Registry& registry);

  /// As of the event in hand.
  const ThreadTracker& threads() const { return threads_; }

 private:
  using Ring = ViewerRing;

  /// The last stop-the-world section of a process.
  struct Section {
    std::uint64_t first_flow = 0;         ///< the arrow to domain d is first_flow + d
    std::vector<std::uint16_t> called{};  ///< domains that it has arrows for
  };
  /// Which ring uses the track of a thread: one at a time.
  struct Owner {
    const Ring* ring;     ///< null: none
    std::uint64_t since;  ///< 0 for the first ring
  };
  struct Ended {
    std::uint64_t time;
    ProcessIndex process;
    std::int32_t pid;
  };

  void add(const EventContext& context);

  // Spans of rings.
  Lane* lane_for(Ring& ring, const EventContext& context) override;
  void on_begin(Ring& ring, Lane& lane, const EventContext& context) override;
  void on_end(Ring& ring, Lane& lane, const Event& begin, const EventContext& context) override;
  void on_unknown_end(Ring& ring, Lane& lane, const EventContext& context) override;
  void on_close(Ring& ring, Lane& lane, const Event& begin, std::uint64_t time, SpanMark mark) override;
  void on_resume(Ring& ring, Lane& lane, const Event& begin, std::uint64_t time) override;
  void on_other(Ring& ring, const EventContext& context) override;
  void on_domain_begin(Ring& ring, std::uint64_t time, bool certain) override;
  void on_forget(Ring& ring) override { set_owner(ring, nullptr); }
  void prepare(Ring& ring, const EventContext& context);
  Lane& place(Ring& ring);
  static bool waits(const Ring& ring);
  Flows flows_of(const Ring& ring, const Event& event);
  void lost(Ring& ring, const EventContext& context);
  bool own(const Ring& ring, const Track& track);
  void set_owner(const Ring& ring, const Ring* owner);
  static void begin_at(Ring& ring, std::uint64_t time);

  // Processes, threads and the scheduler.
  void process_event(const EventContext& context);
  std::uint64_t in_order(std::uint64_t time) { return sched_now_ = std::max(sched_now_, time); }
  void sched_switch(const EventContext& context);
  void on_thread_interval(const ThreadInterval& interval) override;
  void on_cpu_interval(const CpuInterval& interval) override;
  void on_left_unseen(std::uint32_t cpu, const RunningThread& running, std::uint64_t time_ns) override;
  void wakeup(const EventContext& context);
  void dropped(const EventContext& context);
  void sample(const EventContext& context);
  void forget_ended(std::uint64_t now);
  void forget(const Track& track);

  TraceWriter& writer_;
  const Registry* registry_ = nullptr;  ///< of the batch in hand
  TrackTable tracks_;
  TaskTracks tasks_{writer_, tracks_};
  /// It gets late scheduler events at the newest time, where they are shown, and it does not get losses: a viewer shows
  /// what was seen, up to the switch that contradicts it.
  ThreadTracker threads_{this};
  /// Viewers stop at 512 spans on a track. No ring may be left out.
  SpanTracker<Ring> spans_{*this, {.rings = SIZE_MAX, .depth = 256, .user_spans_overlap = true}};
  std::unordered_map<ProcessIndex, Section> sections_;
  std::unordered_map<std::uint32_t, Owner> owners_;  ///< of threads' tracks, by track id
  std::deque<Ended> ended_;                          ///< their tracks are kept for late events
  std::uint64_t batch_ = 0;
  std::uint64_t now_ = 0;        ///< newest time seen
  std::uint64_t sched_now_ = 0;  ///< newest time of a switch or wakeup
  std::uint64_t next_flow_ = 1;
  std::vector<std::uint64_t> flow_ids_;
};

}  // namespace rtev
