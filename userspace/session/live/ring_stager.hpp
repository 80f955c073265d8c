// SPDX-License-Identifier: MIT
// Adds events that were read from rings to the stream.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "rtev/event.hpp"
#include "stream/event_kinds.hpp"
#include "stream/registry.hpp"
#include "stream/timeline.hpp"

namespace rtev {

/// Stages batches of rings in the timeline, and learns from them what their process did not reveal: the version of
/// OCaml that their ids belong to, and that the runtime stopped the ring. One thread.
class RingStager {
 public:
  using OnStop = std::function<void(std::uint64_t time_ns, ProcessIndex process)>;
  /// Calls `on_stop` when a ring was stopped and that was not known. Events of `unused` kinds are not staged.
  RingStager(Registry& registry, Timeline& timeline, OnStop on_stop, EventKinds unused = {})
      : registry_(registry), timeline_(timeline), on_stop_(std::move(on_stop)), unused_(unused) {}

  /// A ring that OCaml's runtime may write.
  void add(std::uint32_t slot);
  void stage(const Batch& batch);
  /// The last batch of the ring was staged.
  void forget(std::uint32_t slot) { undecided_.erase(slot); }

 private:
  void find_family(const Batch& batch);
  void find_stop(const Batch& batch);

  Registry& registry_;
  Timeline& timeline_;
  OnStop on_stop_;
  EventKinds unused_;
  std::vector<Event> used_;            ///< of a batch
  std::set<std::uint32_t> undecided_;  ///< slots whose decode family is unknown
};

}  // namespace rtev
