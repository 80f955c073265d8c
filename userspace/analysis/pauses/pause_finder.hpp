// SPDX-License-Identifier: MIT
// Pauses and the phases in them, from the runtime spans of each domain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "rtev/event.hpp"
#include "rtev/names.hpp"
#include "stream/registry.hpp"
#include "stream/span_stack.hpp"

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

/// A domain of a process from its spawn to its end: OCaml uses the numbers of domains again.
struct DomainLife {
  ProcessIndex process = 0;
  std::int32_t pid = 0;
  std::uint16_t domain = 0;
  std::uint32_t incarnation = 0;  ///< 0 for the first domain of that number that was seen
  Family family = Family::since_5_3;
  std::uint32_t source = 0;  ///< of its ring: Source::pack()
};

/// A runtime phase that began.
struct PhaseBegin {
  std::uint16_t phase;
  std::uint64_t time_ns;
  bool late;          ///< flag_late: the scheduling at that time is unknown
  std::size_t depth;  ///< spans around it that are open; waiting for conditions apart
  bool in_pause;      ///< the pause that it opens included
};

/// A runtime phase that ended.
struct PhaseEnd {
  std::uint16_t phase;
  std::uint64_t begin_ns;
  std::uint64_t end_ns;  ///< not before begin_ns
  bool late;             ///< its begin or its end was
  std::size_t depth;     ///< as its begin had it
  bool in_pause;
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

/// A fold over the stream that follows the spans of each ring. Events may be missing: ends without a begin change
/// nothing; a begin whose end is missing is dropped when that turns out. After words were lost nothing counts as a
/// pause until it is certain that its begin is that of the outermost span. Memory is bounded. One thread.
class PauseFinder {
 public:
  struct Limits {
    std::size_t domains = std::size_t{1} << 16;  ///< followed at once; phases of further ones are counted in ignored()
    std::size_t depth = 256;                     ///< of spans in a domain; no runtime nests deeper
  };
  explicit PauseFinder(PauseListener& listener, PauseRule rule = PauseRule::outermost)
      : PauseFinder(listener, rule, Limits{}) {}
  PauseFinder(PauseListener& listener, PauseRule rule, Limits limits)
      : listener_(listener), rule_(rule), limits_(limits) {}

  /// Uses phases, lifecycle events, losses, and ends of processes; ignores all other events.
  void add(const Event& event, const Batch& batch, const Registry& registry);
  /// At the end of the stream: drops what is open (Unfinished::ended), ends the domains.
  void finish(std::uint64_t time_ns);

  /// Ends of phases whose begin was not seen.
  std::uint64_t ends_without_begin() const { return ends_without_begin_; }
  /// Phase events of domains beyond the limit.
  std::uint64_t ignored() const { return ignored_; }

 private:
  struct Wait {
    Event begin;
    bool in_pause;
  };
  /// Whether a span that begins while none is open is certain to be an outermost one.
  enum class NestingConfidence : std::uint8_t { unseen, firm, lost };
  struct Domain {
    DomainLife life;
    bool alive = false;
    bool spawned = false;  ///< its spawn was seen
    bool gaps = false;     ///< words were lost in its life
    bool stopped = false;  ///< its ring is being taken down
    bool foreign = false;  ///< not written by OCaml's runtime
    NestingConfidence nesting = NestingConfidence::unseen;
    SpanStack spans;          ///< phases
    std::vector<Wait> waits;  ///< for conditions: they end in any order, and other threads of the domain go on
    std::size_t root = none;  ///< which of the spans is the root of the pause

    bool is_in_pause(std::size_t span) const { return root != none && span >= root; }
  };
  using Domains = std::map<std::uint64_t, Domain>;  ///< by process and source
  static constexpr std::size_t none = SIZE_MAX;

  static PhaseEnd end_of(const Event& begin, std::uint64_t end_ns, std::uint8_t flags, std::size_t depth,
                         bool in_pause);

  Domain* domain_of(const Event& event, const Registry& registry);
  Domain* new_domain(std::uint64_t key, const Registry& registry);
  void begin_life(Domain& domain, std::uint64_t time_ns, bool certain);
  void end_life(Domain& domain, std::uint64_t time_ns);
  void begin(Domain& domain, const Event& event);
  void end(Domain& domain, const Event& event);
  void end_wait(Domain& domain, const Event& event);
  void lifecycle(Domain& domain, const Event& event);
  bool is_root(Domain& domain, std::uint16_t phase) const;
  void drop(Domain& domain, std::size_t from, std::uint64_t time_ns, Unfinished reason);
  void drop_wait(Domain& domain, std::size_t index, std::uint64_t time_ns, Unfinished reason);
  void drop_all(Domain& domain, std::uint64_t time_ns, Unfinished reason);
  void resume(ProcessIndex process, std::uint64_t time_ns);
  void end_process(ProcessIndex process, std::uint64_t time_ns);

  PauseListener& listener_;
  PauseRule rule_;
  Limits limits_;
  Domains domains_;
  Domain* latest_ = nullptr;  ///< of the last event
  std::uint64_t ends_without_begin_ = 0;
  std::uint64_t ignored_ = 0;
  std::size_t until_sweep_ = 0;  ///< events of domains beyond the limit, until ended processes are looked for
};

}  // namespace rtev
