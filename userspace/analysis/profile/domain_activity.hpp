// SPDX-License-Identifier: MIT
// What each domain does at a time: its GC phases, and the user spans that are open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/open_spans.hpp"
#include "analysis/pause_finder.hpp"
#include "analysis/spans/library_spans.hpp"
#include "stream/registry.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// A fold over the stream. Memory is bounded. One thread.
class DomainActivity final : private PauseListener {
 public:
  /// Told of the ends of what was open; all do nothing unless overridden.
  class Observer {
   public:
    virtual ~Observer() = default;
    /// `span` is not open any more. `is_known`: it ended, else its length is unknown and at least what it seems to be.
    virtual void on_span_end(ProcessIndex, std::uint16_t /*domain*/, const OpenSpan& /*span*/,
                             std::uint64_t /*time_ns*/, bool /*is_known*/) {}
    virtual void on_pause_end(ProcessIndex, std::uint64_t /*begin_ns*/, std::uint64_t /*end_ns*/, bool /*is_known*/) {}
  };
  explicit DomainActivity(Observer& observer) : observer_(observer) {}
  DomainActivity(const DomainActivity&) = delete;
  DomainActivity& operator=(const DomainActivity&) = delete;

  void header(const RunHeader& header) { finder_.header(header); }

  /// Fibers of a domain may have as many at a time.
  static constexpr std::size_t max_spans = 512, max_domains = std::size_t{1} << 16;
  struct Domain {
    std::vector<std::pair<Family, std::uint16_t>> phases{};  ///< innermost last
    OpenSpans<max_spans> spans{};

    bool in_gc() const { return !phases.empty(); }
  };

  void add(const Event& event, const Batch& batch, const Registry& registry);
  void finish(std::uint64_t time_ns);

  /// Null if nothing is known of it.
  const Domain* domain(ProcessIndex process, std::int32_t domain) const;
  /// When the pauses of its domains began that last still.
  std::vector<std::uint64_t> open_pauses(ProcessIndex process) const;
  std::optional<std::int64_t> current_fiber(ProcessIndex process, std::int32_t domain) const {
    return libraries_.current_fiber(process, static_cast<std::uint16_t>(domain));
  }
  /// Of an open span. Empty if it is not known.
  static std::string name_of(const OpenSpan& span, const Registry& registry);

 private:
  using Key = std::pair<ProcessIndex, std::uint16_t>;

  void on_phase_begin(const DomainLife& life, const PhaseBegin& phase) override;
  void on_phase_end(const DomainLife& life, const PhaseEnd& phase) override { end_phase(life, phase.phase); }
  void on_phase_dropped(const DomainLife& life, const PhaseEnd& phase, Unfinished /*reason*/) override {
    end_phase(life, phase.phase);
  }
  void on_pause_begin(const DomainLife& life, const PhaseBegin& root) override;
  void on_pause_end(const DomainLife& life, const PhaseEnd& root) override { end_pause(life, root, true); }
  void on_pause_dropped(const DomainLife& life, const PhaseEnd& root, Unfinished /*reason*/) override {
    end_pause(life, root, false);
  }
  void on_domain_end(const DomainLife& life, std::uint64_t time_ns) override;
  void on_loss(const DomainLife& life, const Loss& loss) override {
    drop_spans({life.process, life.domain}, loss.to_ns);
  }

  void user_event(const Event& event, const Batch& batch, const RingInfo& ring);
  void library_event(const Event& event, const RingInfo& ring, const LibrarySpanEvent& what);
  void end_phase(const DomainLife& life, std::uint16_t phase);
  void end_pause(const DomainLife& life, const PhaseEnd& root, bool is_known);
  void drop_spans(const Key& key, std::uint64_t time_ns);
  void forget_process(ProcessIndex process, std::uint64_t time_ns);
  /// Null if there are too many domains.
  Domain* add_domain(const Key& key);

  Observer& observer_;
  PauseFinder finder_{*this};
  LibrarySpans libraries_;
  std::map<Key, Domain> domains_;  ///< with a phase or a span
  std::map<ProcessIndex, std::map<std::uint16_t, std::uint64_t>> pauses_;
};

}  // namespace rtev
