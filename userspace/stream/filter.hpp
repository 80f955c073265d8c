// SPDX-License-Identifier: MIT
// --events: lets only some events through to another sink.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rtev/error.hpp"
#include "stream/event_counts.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Which events to show: kinds ("phase", "counter", "alloc", "lifecycle", "user", "process", "switch", "wakeup"), and
/// names of OCaml's events or of user events, exactly ("minor", "ring_start", "request") or with wildcards ("minor*").
/// A word that is no kind is a name: any program may have a user event of it. What was lost is always shown.
class EventFilter {
 public:
  /// From a list separated by commas, none of them empty.
  static Result<EventFilter> parse(std::string_view list);

  bool accepts(const Event& event, const Registry& registry);

 private:
  bool accepts_name(std::string_view name);

  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::array<bool, event_kind_count> kinds_{};
  std::vector<std::string> patterns_;
  std::unordered_map<std::string, bool, Hash, std::equal_to<>> verdicts_;  ///< on names met
};

/// Gives the other sink what the filter accepts.
class FilterSink final : public ForwardingSink {
 public:
  FilterSink(Sink& sink, EventFilter filter) : ForwardingSink(sink), filter_(std::move(filter)) {}

  void consume(const Batch& batch, const Registry& registry) override;
  /// Counts of events are of those that were let through.
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  EventFilter filter_;
  EventCounts counts_;
  std::vector<Event> accepted_;
};

}  // namespace rtev
