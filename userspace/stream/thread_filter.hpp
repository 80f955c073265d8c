// SPDX-License-Identifier: MIT
// The sink that hands on the events of some domains and threads: --domain, --tid.
#pragma once

#include <utility>

#include "stream/filter.hpp"
#include "stream/thread_selection.hpp"
#include "stream/thread_tracker.hpp"

namespace rtev {

/// Hands on scheduler events of the selected threads, events of the rings that they write, and all events of processes
/// and losses. One thread.
class ThreadFilter final : public PartialSink {
 public:
  ThreadFilter(Sink& sink, ThreadSelection selection) : PartialSink(sink), selection_(std::move(selection)) {}

  void consume(const Batch& batch, const Registry& registry) override;
  void summary(const RunSummary& summary, const Registry& registry) override;

 private:
  bool accepts(const Event& event, const Batch& batch, const Registry& registry) const;
  bool accepts(const Thread& thread) const { return selection_.accepts(thread.domain, thread.tid); }

  ThreadSelection selection_;
  ThreadTracker threads_;  ///< knows which thread writes a ring
};

}  // namespace rtev
