// SPDX-License-Identifier: MIT
// Notices in a stream when one of a few conditions is met.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/pause_finder.hpp"
#include "analysis/spans/library_spans.hpp"
#include "flight/condition.hpp"
#include "stream/registry.hpp"
#include "stream/thread_tracker.hpp"

namespace rtev::flight {

/// A condition is met. Of a condition that stays true this is reported again and again.
struct Firing {
  std::size_t condition = 0;  ///< its index
  ProcessIndex process = 0;   ///< 0: unknown, or of the whole host
  std::uint64_t time_ns = 0;  ///< of the stream
  double value = 0;           ///< ns, bytes, a share or a number, as the condition has it
};

/// "51.2ms", "2.1 GB", "34.5%", "1,234".
std::string value_text(const Condition& condition, double value);

/// A fold over the stream. Follows only what its conditions ask for. Pauses and spans are reported as soon as they are
/// too long, once each. Memory is bounded. One thread.
class TriggerFinder final : private PauseListener, private ThreadObserver {
 public:
  using Report = std::function<void(const Firing& firing, const Registry& registry)>;
  /// At most 64 conditions.
  TriggerFinder(std::vector<Condition> conditions, Report report);

  void consume(const Batch& batch, const Registry& registry);
  /// See Sink::advance().
  void advance(std::uint64_t time_ns, const Registry& registry);
  /// Reports what is too long at this time, which advance() does now and then.
  void check_at(std::uint64_t time_ns, const Registry& registry);

 private:
  using What = Condition::What;
  using Mask = std::uint64_t;  ///< of conditions
  struct OpenPause {
    ProcessIndex process = 0;
    std::uint64_t begin_ns = 0;
    Mask reported = 0;
  };
  struct OpenSpan {
    std::uint16_t event = 0;
    std::uint64_t begin_ns = 0;
    Mask wanted = 0, reported = 0;
    bool of_library = false;
    std::optional<std::int64_t> fiber{};
    std::string name{};  ///< of a library's
  };
  struct SpanRing {
    ProcessIndex process = 0;
    std::vector<OpenSpan> open{};
  };
  struct Named {
    ProcessIndex process = 0;
    Mask wanted = 0;
  };
  struct HeapRing {
    ProcessIndex process = 0;
    std::array<std::uint64_t, 3> words{};  ///< of a domain: all; in pools; in large blocks
  };
  struct SharePart {
    ProcessIndex process = 0;
    std::uint32_t domains = 0;
    std::uint64_t since_ns = 0;
    std::array<std::uint64_t, 20> ns{};  ///< of pauses, in parts of the time; the present one is at `now`
    std::size_t now = 0;
  };
  struct Share {
    std::size_t condition = 0;
    std::uint64_t next_ns = 0;  ///< when the present part ends
    std::map<ProcessIndex, SharePart> processes{};
  };

  void on_domain_begin(const DomainLife& domain, std::uint64_t time_ns, bool certain) override;
  void on_domain_end(const DomainLife& domain, std::uint64_t time_ns) override;
  void on_pause_begin(const DomainLife& domain, const PhaseBegin& root) override;
  void on_pause_end(const DomainLife& domain, const PhaseEnd& root) override;
  void on_pause_dropped(const DomainLife& domain, const PhaseEnd& root, Unfinished reason) override;
  void on_thread_interval(const ThreadInterval& interval) override;

  void spans(const Event& event, const Batch& batch, const Registry& registry);
  void begin_span(const Event& event, ProcessIndex process, OpenSpan span);
  void end_span(std::uint32_t source, std::uint64_t time_ns, const std::function<bool(const OpenSpan&)>& ends,
                bool is_whole);
  Mask wanted(const std::string& name) const;
  void heap(const Event& event, const Registry& registry);
  void lost(const Event& event, const Batch& batch, const Registry& registry);
  void check_open(std::uint64_t time_ns);
  void check_shares(std::uint64_t time_ns);
  Mask longer(What what, Mask among, std::uint64_t ns) const;
  void report(Mask conditions, ProcessIndex process, std::uint64_t time_ns, double value);
  Mask mask_of(What what) const { return masks_[static_cast<std::size_t>(what)]; }

  static constexpr std::size_t max_rings = std::size_t{1} << 16, max_open_spans = 256;

  std::vector<Condition> conditions_;
  Report report_;
  std::array<Mask, 6> masks_{};  ///< by What
  const Registry* registry_ = nullptr;
  std::uint64_t check_ns_ = 0, next_check_ns_ = 0;

  std::optional<PauseFinder> pauses_;
  std::unordered_map<std::uint64_t, OpenPause> open_pauses_;  ///< by DomainLife::key()
  std::vector<Share> shares_;
  std::optional<ThreadTracker> threads_;
  LibrarySpans libraries_;
  std::unordered_map<std::uint32_t, SpanRing> span_rings_;  ///< by source; those with open spans
  std::unordered_map<std::uint32_t, Named> named_;          ///< by slot and id
  std::unordered_map<std::uint32_t, HeapRing> heap_rings_;  ///< by source
  std::unordered_map<ProcessIndex, std::array<std::uint64_t, 3>> heaps_;
};

}  // namespace rtev::flight
