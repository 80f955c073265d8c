// SPDX-License-Identifier: MIT
// -p, -n and -d for streams that were recorded before: they mean what they mean when tracing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stream/event_counts.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct SelectionOptions {
  std::vector<std::int32_t> pids{};                    ///< only these, if any
  std::vector<std::string> name_globs{};               ///< only processes whose comm matches one, if any
  std::optional<std::chrono::nanoseconds> duration{};  ///< from the beginning of the recording
  /// What the scheduler did to threads of other processes, too: analyses want to know who had the cpus meanwhile.
  bool all_scheduling = false;
};

/// Gives another sink the selected processes' events, and what the scheduler did to their threads. Where all threads'
/// scheduler events were recorded (--sched all) all are handed on, as when tracing.
class Selection final : public ForwardingSink {
 public:
  Selection(Sink& sink, SelectionOptions options) : ForwardingSink(sink), options_(std::move(options)) {}

  void header(const RunHeader& header) override;
  void consume(const Batch& batch, const Registry& registry) override;
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  bool accepts(const Event& event, const Batch& batch, const Registry& registry);
  bool accepts(const ProcessInfo& facts);
  bool accepts(const SchedSwitch& change);
  void untrack_others(const Event& event, const Batch& batch);

  SelectionOptions options_;
  std::uint64_t end_ns_ = UINT64_MAX;
  std::set<std::int32_t> selected_;  ///< pids
  bool sees_all_ = false;            ///< a switch of two untracked threads was seen: the stream has all switches
  std::vector<Event> accepted_;
  std::vector<std::byte> payloads_;  ///< of a batch, where some had to be changed
  EventCounts counts_;
};

}  // namespace rtev
