// SPDX-License-Identifier: MIT
// Which spans are open in each ring, which incarnation of its domain writes it, and what closes spans.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <ranges>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/enum_names.hpp"
#include "base/recent_entries.hpp"
#include "rtev/event.hpp"
#include "rtev/names.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// A runtime phase; otherwise a user span.
inline bool is_phase(const Event& event) {
  return event.kind == EventKind::begin || event.kind == EventKind::end;
}

/// An event with what is needed to name it and to read its payload. Valid during the call.
struct EventContext {
  const Event& event;
  const Batch& batch;
  const Registry& registry;
};

/// Why a span begins or ends without an event of the stream.
enum class SpanMark : std::uint8_t {
  began_before,  ///< begin: its event was before the recording, or was lost
  resumed,       ///< begin: it continues behind a span that did not nest with it
  interrupted,   ///< end: a span around it ended, or too many are open; it may be resumed at once
  lost,          ///< end: words of its ring were lost, perhaps its end
  domain_ended,  ///< end: the domain ended, or its ring began anew, before it did
  exited,        ///< end: the process exited or executed another program
  cut,           ///< end: the recording ends
};
inline std::string_view to_string(SpanMark mark) {
  static constexpr std::string_view names[]{"began before", "resumed",       "interrupted",    "lost",
                                            "domain ended", "process ended", "recording ended"};
  return name_at(names, mark);
}

/// One incarnation of a domain of a process, from its spawn to its end: OCaml uses the numbers of domains again.
struct DomainLife {
  ProcessIndex process = 0;  ///< 0: unknown
  std::int32_t pid = 0;
  std::uint16_t domain = 0;
  std::uint32_t incarnation = 0;  ///< from 1; 0 before the first event that shows that it is there
  Family family = Family::since_5_3;
  std::uint32_t source = 0;  ///< of its ring: Source::pack()

  /// Different for each ring of each process image.
  std::uint64_t key() const { return std::uint64_t{process} << 32 | source; }
};

/// Why all rings of a process are looked at. Programs may cause this with each event, and have thousands of rings: so
/// those without an event since the last visit of the same kind are left out.
enum class SpanVisit : std::uint8_t { restart, resume };

/// Spans that nest with each other.
template <typename Key>
struct SpanLane {
  Key key;
  std::vector<Event> open{};  ///< by the events that began them, outermost first
};

/// The ring of a domain: one incarnation after the other. An observer derives from it what it keeps of a ring.
template <typename Key>
struct SpanRing {
  using Lane = SpanLane<Key>;

  DomainLife life{};            ///< the present one, or the last one if not alive
  bool alive = false;           ///< an incarnation has begun and not ended
  bool spawned = false;         ///< its spawn was seen
  bool gaps = false;            ///< words were lost in it
  bool from_producer = false;   ///< not written by OCaml's runtime
  std::uint64_t newest_ns = 0;  ///< of the events before the present one
  std::array<bool, 2> used{};   ///< since the last visit of each kind: see SpanVisit
  std::vector<std::unique_ptr<Lane>> lanes{};

  /// The lane with this key, which is added if there is none.
  Lane& lane(const Key& key) {
    for (const auto& lane : lanes) {
      if (lane->key == key) return *lane;
    }
    return *lanes.emplace_back(new Lane{.key = key});
  }
  /// When words are lost: the time up to which its events are known.
  std::uint64_t known_until(const Loss& loss, std::uint64_t time_ns) const {
    return std::clamp(loss.from_ns, std::min(newest_ns, time_ns), time_ns);
  }
};

/// Called by a SpanTracker in the order of the stream. For each event of a ring on_begin(), on_end(), on_unknown_end()
/// or on_other() is called once, if lane_for() does not refuse it.
template <typename Ring>
class SpanObserver {
 public:
  using Lane = typename Ring::Lane;

  virtual ~SpanObserver() = default;
  /// Where a span begins, or is looked for first at its end. Spans of the ring may be closed before. Null: the span is
  /// ignored.
  virtual Lane* lane_for(Ring& ring, const EventContext& /*context*/) { return &ring.lane({}); }
  /// The event is the innermost of its lane now.
  virtual void on_begin(Ring& /*ring*/, Lane& /*lane*/, const EventContext& /*context*/) {}
  /// `begin` was the innermost of the lane, and is removed. The clock may have gone back since.
  virtual void on_end(Ring& /*ring*/, Lane& /*lane*/, const Event& /*begin*/, const EventContext& /*context*/) {}
  /// The begin of the span was not seen, or its end was taken for missing.
  virtual void on_unknown_end(Ring& /*ring*/, Lane& /*lane*/, const EventContext& /*context*/) {}
  /// `begin` was the innermost of the lane, and is removed.
  virtual void on_close(Ring& /*ring*/, Lane& /*lane*/, const Event& /*begin*/, std::uint64_t /*time_ns*/,
                        SpanMark /*mark*/) {}
  /// It was closed for another span and goes on: it is the innermost of the lane now.
  virtual void on_resume(Ring& /*ring*/, Lane& /*lane*/, const Event& /*begin*/, std::uint64_t /*time_ns*/) {}
  /// Events that are no spans, and begins of spans that there is no room for. A loss has closed the spans of the ring,
  /// a spawn those of the last incarnation; the end of a domain closes them afterwards.
  virtual void on_other(Ring& /*ring*/, const EventContext& /*context*/) {}
  /// `certain`: the stream has the incarnation from its spawn.
  virtual void on_domain_begin(Ring& /*ring*/, std::uint64_t /*time_ns*/, bool /*certain*/) {}
  /// Its spans have been closed.
  virtual void on_domain_end(Ring& /*ring*/, std::uint64_t /*time_ns*/) {}
  /// The ring is removed after this. Its incarnation has ended.
  virtual void on_forget(Ring& /*ring*/) {}
};

/// A fold over the events of rings. A ring belongs to a domain, whose threads take turns, and events may be missing:
/// ends come without begins and begins without ends. An end closes what is open inside its span; a loss, the end of the
/// domain or of the process, and a ring that begins anew close all that is open. Memory is bounded. One thread.
template <typename Ring>
class SpanTracker {
 public:
  using Lane = typename Ring::Lane;

  struct Options {
    std::size_t rings = std::size_t{1} << 16;  ///< followed at once
    std::size_t depth = 1024;                  ///< of a lane; beyond, the outer half of its spans is closed
    std::size_t open = std::size_t{1} << 20;   ///< in all lanes; beyond, further spans are events like others
    /// User spans end by their own ends only, and do not end the spans inside.
    bool user_spans_overlap = false;
  };
  SpanTracker(SpanObserver<Ring>& observer, const Options& options) : observer_(observer), options_(options) {}
  SpanTracker(const SpanTracker&) = delete;
  SpanTracker& operator=(const SpanTracker&) = delete;

  /// Uses events of rings and ends of processes. False if the event is of a ring beyond the limit.
  bool add(const EventContext& context);
  /// Ends the process's incarnations, and forgets its rings. Late events may add them again.
  void forget_process(ProcessIndex process, std::uint64_t time_ns);
  /// At the end of the stream: ends all incarnations.
  void finish(std::uint64_t time_ns) {
    for (const auto& [index, process] : processes_) {
      for (Ring* const ring : process.rings) end_domain(*ring, time_ns, SpanMark::cut);
    }
  }

  // For observers.
  /// Closes the spans of a lane from an index on, innermost first.
  void close(Ring& ring, Lane& lane, std::size_t from, std::uint64_t time_ns, SpanMark mark) {
    while (lane.open.size() > from) observer_.on_close(ring, lane, pop(lane), time_ns, mark);
  }
  void close_all(Ring& ring, std::uint64_t time_ns, SpanMark mark) {
    for (const auto& lane : ring.lanes) close(ring, *lane, 0, time_ns, mark);
  }
  /// Closes the spans of a lane from an index on, calls between(), and resumes those for which goes_on(begin) was true.
  template <typename GoesOn, typename Between>
  void interrupt(Ring& ring, Lane& lane, std::size_t from, std::uint64_t time_ns, const GoesOn& goes_on,
                 const Between& between);
  struct Process {
    std::vector<Ring*> rings{};                ///< in the order they were first seen
    std::array<std::vector<Ring*>, 2> used{};  ///< by SpanVisit
  };
  const std::map<ProcessIndex, Process>& processes() const { return processes_; }
  /// Calls visit(Ring&) for each ring of a process, or for `max` of them.
  template <typename Visitor>
  void each_ring(ProcessIndex process, const Visitor& visit, std::size_t max = SIZE_MAX) const {
    const auto found = processes_.find(process);
    if (found == processes_.end()) return;
    const std::vector<Ring*>& rings = found->second.rings;
    for (Ring* const ring : rings | std::views::take(std::min(max, rings.size()))) visit(*ring);
  }
  /// Calls visit(Ring&) for each ring of a process that had an event since the last call with this `kind`.
  template <typename Visitor>
  void each_used_ring(ProcessIndex process, SpanVisit kind, const Visitor& visit) {
    const auto found = processes_.find(process);
    if (found == processes_.end()) return;
    const auto index = static_cast<std::size_t>(kind);
    for (Ring* const ring : std::exchange(found->second.used[index], {})) {
      ring->used[index] = false;
      visit(*ring);
    }
  }

 private:
  static constexpr std::size_t min_sweep = 1024;

  Ring* ring_of(const EventContext& context);
  Ring* add_ring(const EventContext& context, ProcessIndex process);
  void forget_ring(Ring& ring, std::uint64_t time_ns);
  void sweep(const EventContext& context);
  void note_used(Ring& ring);
  void begin(Ring& ring, const EventContext& context);
  void end(Ring& ring, const EventContext& context);
  bool end_in(Ring& ring, Lane& lane, const EventContext& context);
  void lifecycle(Ring& ring, const EventContext& context);
  void begin_domain(Ring& ring, std::uint64_t time_ns, bool certain) {
    ring.alive = true;
    ++ring.life.incarnation;
    observer_.on_domain_begin(ring, time_ns, certain);
  }
  void end_domain(Ring& ring, std::uint64_t time_ns, SpanMark mark);
  void push(Lane& lane, const Event& begin) {
    lane.open.push_back(begin);
    ++open_;
  }
  Event pop(Lane& lane) {
    const Event begin = lane.open.back();
    lane.open.pop_back();
    --open_;
    // Else memory is that of the deepest nesting each lane ever had.
    if (lane.open.empty() && lane.open.capacity() > 64) lane.open.shrink_to_fit();
    return begin;
  }

  SpanObserver<Ring>& observer_;
  Options options_;
  std::unordered_map<std::uint32_t, Ring> rings_;  ///< by source
  std::map<ProcessIndex, Process> processes_;
  RecentEntries<Ring> recent_;
  std::size_t open_ = 0;  ///< spans in all lanes
  std::size_t until_sweep_ = min_sweep;
};

template <typename Ring>
bool SpanTracker<Ring>::add(const EventContext& context) {
  const Event& event = context.event;
  if (event.kind == EventKind::process) {
    const auto record = context.batch.template payload_as<ProcessRecord>(event);
    if (record && event.id == static_cast<std::uint16_t>(ProcessAction::exit))
      forget_process(record->process, event.time);
    return true;
  }
  Ring* const ring = ring_of(context);
  if (ring == nullptr) return false;
  if (!(ring->used[0] && ring->used[1])) [[unlikely]]
    note_used(*ring);
  switch (event.kind) {
    case EventKind::end:
    case EventKind::user_end:
      end(*ring, context);
      break;
    case EventKind::lifecycle:
      lifecycle(*ring, context);
      break;
    case EventKind::lost:
      if (!ring->alive) begin_domain(*ring, event.time, false);
      close_all(*ring, ring->known_until(context.batch.template payload_as<Loss>(event).value_or(Loss{}), event.time),
                SpanMark::lost);
      ring->gaps = true;
      observer_.on_other(*ring, context);
      break;
    default:
      // All events since the last incarnation ended are of the next one: a new domain takes part in collections before
      // its spawn event.
      if (!ring->alive) begin_domain(*ring, event.time, ring->life.incarnation > 0);
      if (event.kind == EventKind::begin || event.kind == EventKind::user_begin) {
        begin(*ring, context);
      } else {
        observer_.on_other(*ring, context);
      }
  }
  ring->newest_ns = std::max(ring->newest_ns, event.time);
  return true;
}

template <typename Ring>
Ring* SpanTracker<Ring>::ring_of(const EventContext& context) {
  const std::uint32_t source = context.event.source;
  const RingInfo* const info = context.registry.ring(Source::unpack(source).slot);
  const ProcessIndex process = info != nullptr ? info->process : 0;
  Ring* ring = recent_.find(rings_, source);
  if (ring == nullptr) [[unlikely]]
    ring = add_ring(context, process);
  if (ring != nullptr && ring->life.process != process) [[unlikely]] {  // the slot is used again
    forget_ring(*ring, context.event.time);
    ring = add_ring(context, process);
  }
  if (ring != nullptr) ring->life.family = context.registry.family_of(context.event).value_or(Family::since_5_3);
  return ring;
}

template <typename Ring>
Ring* SpanTracker<Ring>::add_ring(const EventContext& context, ProcessIndex process) {
  if (until_sweep_-- == 0) sweep(context);
  if (rings_.size() >= options_.rings) return nullptr;
  const std::uint32_t source = context.event.source;
  const RingInfo* const info = context.registry.ring(Source::unpack(source).slot);
  Ring& ring = rings_[source];
  ring.life = {.process = process,
               .pid = context.registry.process(process).pid,
               .domain = Source::unpack(source).domain,
               .source = source};
  ring.from_producer = info != nullptr && info->producer;
  processes_[process].rings.push_back(&ring);
  return &ring;
}

template <typename Ring>
void SpanTracker<Ring>::note_used(Ring& ring) {
  Process& process = processes_[ring.life.process];
  for (std::size_t kind = 0; kind < ring.used.size(); ++kind)
    if (!std::exchange(ring.used[kind], true)) process.used[kind].push_back(&ring);
}

template <typename Ring>
void SpanTracker<Ring>::forget_ring(Ring& ring, std::uint64_t time_ns) {
  end_domain(ring, time_ns, SpanMark::exited);
  observer_.on_forget(ring);
  if (const auto process = processes_.find(ring.life.process); process != processes_.end()) {
    std::erase(process->second.rings, &ring);
    for (auto& used : process->second.used) std::erase(used, &ring);
    if (process->second.rings.empty()) processes_.erase(process);
  }
  const std::uint32_t source = ring.life.source;
  recent_.forget(source);
  rings_.erase(source);
}

template <typename Ring>
void SpanTracker<Ring>::forget_process(ProcessIndex process, std::uint64_t time_ns) {
  const auto rings = processes_.extract(process);
  if (rings.empty()) return;
  for (Ring* const ring : rings.mapped().rings) forget_ring(*ring, time_ns);
}

/// Forgets rings that are gone: processes may end without an event in the stream, or have late events afterwards.
template <typename Ring>
void SpanTracker<Ring>::sweep(const EventContext& context) {
  for (auto at = rings_.begin(); at != rings_.end();) {
    Ring& ring = (at++)->second;
    const RingInfo* const info = context.registry.ring(Source::unpack(ring.life.source).slot);
    if (info == nullptr || info->process != ring.life.process) forget_ring(ring, context.event.time);
  }
  until_sweep_ = std::max(min_sweep, rings_.size());
}

template <typename Ring>
void SpanTracker<Ring>::begin(Ring& ring, const EventContext& context) {
  Lane* const lane = observer_.lane_for(ring, context);
  if (lane == nullptr) return;
  if (lane->open.size() >= options_.depth || open_ >= options_.open) {
    // For programs that begin spans and never end them. Inner spans, which do end, stay.
    const std::size_t inner = lane->open.size() / 2;
    std::size_t closed = 0;
    interrupt(ring, *lane, 0, context.event.time, [&](const Event&) { return closed++ < inner; }, [] {});
  }
  if (open_ >= options_.open) return observer_.on_other(ring, context);
  push(*lane, context.event);
  observer_.on_begin(ring, *lane, context);
}

template <typename Ring>
void SpanTracker<Ring>::end(Ring& ring, const EventContext& context) {
  Lane* const lane = observer_.lane_for(ring, context);
  if (lane == nullptr || end_in(ring, *lane, context)) return;
  // A thread may end a span that another thread of the domain began.
  for (const auto& other : ring.lanes) {
    if (other.get() != lane && end_in(ring, *other, context)) return;
  }
  observer_.on_unknown_end(ring, *lane, context);
}

/// Ends the innermost span with the name of the event, and what is open inside it. False if there is none.
template <typename Ring>
bool SpanTracker<Ring>::end_in(Ring& ring, Lane& lane, const EventContext& context) {
  const Event& event = context.event;
  const auto is_same = [&](const Event& begin) { return begin.id == event.id && is_phase(begin) == is_phase(event); };
  if (!lane.open.empty() && is_same(lane.open.back())) [[likely]] {
    observer_.on_end(ring, lane, pop(lane), context);
    return true;
  }
  const auto found = std::ranges::find_if(lane.open.rbegin(), lane.open.rend(), is_same);
  if (found == lane.open.rend()) return false;
  const auto goes_on = [&](const Event& begin) {
    return options_.user_spans_overlap && !(is_phase(begin) && is_phase(event));
  };
  interrupt(ring, lane, static_cast<std::size_t>(lane.open.rend() - found), event.time, goes_on,
            [&] { observer_.on_end(ring, lane, pop(lane), context); });
  return true;
}

template <typename Ring>
template <typename GoesOn, typename Between>
void SpanTracker<Ring>::interrupt(Ring& ring, Lane& lane, std::size_t from, std::uint64_t time_ns,
                                  const GoesOn& goes_on, const Between& between) {
  std::vector<Event> resumed;  // innermost first
  while (lane.open.size() > from) {
    const Event begin = pop(lane);
    if (goes_on(begin)) resumed.push_back(begin);
    observer_.on_close(ring, lane, begin, time_ns, SpanMark::interrupted);
  }
  between();
  for (const Event& begin : std::views::reverse(resumed)) {
    push(lane, begin);
    observer_.on_resume(ring, lane, begin, time_ns);
  }
}

template <typename Ring>
void SpanTracker<Ring>::lifecycle(Ring& ring, const EventContext& context) {
  const std::uint64_t time_ns = context.event.time;
  switch (static_cast<Lifecycle>(context.event.id)) {
    case Lifecycle::domain_spawn:
      // Without a spawn and a gap since, what there is of the present incarnation is of the one that says so now.
      if (ring.spawned || ring.gaps) end_domain(ring, time_ns, SpanMark::domain_ended);
      if (!ring.alive) begin_domain(ring, time_ns, true);
      ring.spawned = true;
      break;
    case Lifecycle::domain_terminate:
      if (!ring.alive) begin_domain(ring, time_ns, false);
      observer_.on_other(ring, context);
      return end_domain(ring, time_ns, SpanMark::domain_ended);
    case Lifecycle::ring_start:
      // The file is used again in place, for all domains.
      each_used_ring(ring.life.process, SpanVisit::restart,
                     [&](Ring& other) { close_all(other, time_ns, SpanMark::domain_ended); });
      if (!ring.alive) begin_domain(ring, time_ns, true);
      break;
    default:
      break;
  }
  observer_.on_other(ring, context);
}

template <typename Ring>
void SpanTracker<Ring>::end_domain(Ring& ring, std::uint64_t time_ns, SpanMark mark) {
  if (!ring.alive) return;
  close_all(ring, time_ns, mark);
  observer_.on_domain_end(ring, time_ns);
  ring.alive = ring.spawned = ring.gaps = false;
}

}  // namespace rtev
