// SPDX-License-Identifier: MIT
// Pauses and the phases in them, from the runtime spans of each domain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rtev/event.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"
#include "stream/span_tracker.hpp"

namespace rtev {

/// What counts as a pause.
enum class PauseRule : std::uint8_t {
  /// The outermost runtime span of a domain, whatever it is; but waiting for a condition of the program
  /// ("domain_condition_wait") is none.
  outermost,
  /// As `olly latency` has it: the outermost of the spans "major", "stw_leader" and "interrupt_remote". Leaves out the
  /// rest of explicit collections, and slices that the program asks for.
  olly,
};

/// A runtime phase that began.
struct PhaseBegin {
  std::uint16_t phase;
  std::uint64_t time_ns;
  bool late;  ///< flag_late: the scheduling at that time is unknown
};

/// A runtime phase that ended.
struct PhaseEnd {
  std::uint16_t phase;
  std::uint64_t begin_ns;
  std::uint64_t end_ns;  ///< not before begin_ns
  bool late;             ///< its begin or its end was
};

/// Why the length of a pause, or of another phase, is unknown.
enum class Unfinished : std::uint8_t {
  lost,    ///< words of the ring were lost in it
  no_end,  ///< its end is missing
  clock,   ///< it ended before it began: the program's clock went back
  ended,   ///< the domain or the process ended in it, or the ring was taken down
};
std::string_view to_string(Unfinished reason);
inline constexpr std::size_t unfinished_count = 4;

/// Called by PauseFinder, in the order of the stream. For the root of a pause: on_pause_begin(), on_phase_begin() ...
/// on_phase_end(), on_pause_end(). All do nothing unless overridden.
class PauseListener {
 public:
  virtual ~PauseListener() = default;
  /// A domain is seen for the first time, or its number is used again. `certain`: the stream has it from its spawn.
  virtual void on_domain_begin(const DomainLife& /*domain*/, std::uint64_t /*time_ns*/, bool /*certain*/) {}
  /// It ended, its process did, or another domain takes its number. Its open spans have been dropped before.
  virtual void on_domain_end(const DomainLife& /*domain*/, std::uint64_t /*time_ns*/) {}
  virtual void on_phase_begin(const DomainLife& /*domain*/, const PhaseBegin& /*phase*/) {}
  virtual void on_phase_end(const DomainLife& /*domain*/, const PhaseEnd& /*phase*/) {}
  /// A phase (of a pause: before on_pause_dropped()) of unknown length. `phase.end_ns` is when that turned out.
  virtual void on_phase_dropped(const DomainLife& /*domain*/, const PhaseEnd& /*phase*/, Unfinished /*reason*/) {}
  virtual void on_pause_begin(const DomainLife& /*domain*/, const PhaseBegin& /*root*/) {}
  virtual void on_pause_end(const DomainLife& /*domain*/, const PhaseEnd& /*root*/) {}
  virtual void on_pause_dropped(const DomainLife& /*domain*/, const PhaseEnd& /*root*/, Unfinished /*reason*/) {}
  /// Words of its ring are missing: phases and pauses between may be, too.
  virtual void on_loss(const DomainLife& /*domain*/, const Loss& /*loss*/) {}
};

/// Waits for conditions of the program are in a lane of their own: they end in any order, and other threads of the
/// domain go on meanwhile.
enum class PhaseKind : std::uint8_t { work, wait };

struct PauseRing : SpanRing<PhaseKind> {
  /// Whether a span that begins while none is open is certain to be an outermost one.
  enum class NestingConfidence : std::uint8_t { unseen, firm, lost };
  static constexpr std::size_t none = SIZE_MAX;

  NestingConfidence nesting = NestingConfidence::unseen;
  bool stopped = false;     ///< the ring is being taken down
  std::size_t root = none;  ///< which span of the lane `work` is the root of the pause

  /// Whether the span that was removed from the lane was the root; if so, there is none any more.
  bool take_root(const Lane& lane) {
    const bool is_root = lane.key == PhaseKind::work && root == lane.open.size();
    if (is_root) root = none;
    return is_root;
  }
};

/// A fold over the stream that follows the spans of each ring. Events may be missing: ends without a begin change
/// nothing; a begin whose end is missing is dropped when that turns out. After words were lost nothing counts as a
/// pause until it is certain that its begin is that of the outermost span. Memory is bounded. One thread.
class PauseFinder final : private SpanObserver<PauseRing> {
 public:
  /// The most domains that are followed at once, and the most spans that are open in one: no runtime nests deeper.
  static constexpr std::size_t max_domains = std::size_t{1} << 16, max_depth = 256;

  explicit PauseFinder(PauseListener& listener, PauseRule rule = PauseRule::outermost,
                       std::size_t domains = max_domains, std::size_t depth = max_depth)
      : listener_(listener), rule_(rule), depth_(depth), spans_(*this, {.rings = domains}) {}

  /// If it lacks pauses nothing counts as one.
  void header(const RunHeader& header) { knows_pauses_ = !header.not_recorded.lacks_pauses(); }
  /// Uses phases, lifecycle events, losses, and ends of processes; ignores all other events.
  void add(const Event& event, const Batch& batch, const Registry& registry);
  /// At the end of the stream: drops what is open (Unfinished::ended), ends the domains.
  void finish(std::uint64_t time_ns);

  /// Ends of phases whose begin was not seen.
  std::uint64_t ends_without_begin() const { return ends_without_begin_; }
  /// Phase events of domains beyond the limit.
  std::uint64_t ignored() const { return ignored_; }

 private:
  using NestingConfidence = PauseRing::NestingConfidence;

  Lane* lane_for(PauseRing& ring, const EventContext& context) override;
  void on_begin(PauseRing& ring, Lane& lane, const EventContext& context) override;
  void on_end(PauseRing& ring, Lane& lane, const Event& begin, const EventContext& context) override;
  void on_unknown_end(PauseRing& ring, Lane& lane, const EventContext& context) override;
  void on_close(PauseRing& ring, Lane& lane, const Event& begin, std::uint64_t time_ns, SpanMark mark) override;
  void on_other(PauseRing& ring, const EventContext& context) override;
  void on_domain_begin(PauseRing& ring, std::uint64_t time_ns, bool certain) override;
  void on_domain_end(PauseRing& ring, std::uint64_t time_ns) override;

  bool is_root(PauseRing& ring, const Lane& lane, std::uint16_t phase) const;
  void drop(PauseRing& ring, const Lane& lane, const Event& begin, Unfinished reason);
  void resume(ProcessIndex process);

  PauseListener& listener_;
  PauseRule rule_;
  std::size_t depth_;
  bool knows_pauses_ = true;
  SpanTracker<PauseRing> spans_;
  std::uint64_t now_ns_ = 0;  ///< of the event in hand
  std::uint64_t ends_without_begin_ = 0;
  std::uint64_t ignored_ = 0;
};

}  // namespace rtev
