// SPDX-License-Identifier: MIT
// What discovery asks of the BPF programs.
#pragma once

#include <cstdint>
#include <optional>

#include "bpf/records.h"
#include "processes/rings/saved_ring.hpp"

namespace rtev {

/// Tells the BPF programs which processes and rings there are, and gets what they saved of rings. `announced_ns` is the
/// time of the RTEV_RING record of a ring. Called on the thread that drives Discovery.
class KernelControl {
 public:
  virtual ~KernelControl() = default;
  /// Watches the threads of a process until its image ends.
  virtual void track(std::int32_t pid, const rtev_tracked& tracked) = 0;
  /// Stops that: the process is not to be traced, or ended before track().
  virtual void untrack(std::int32_t pid) = 0;
  /// The ring that the process announced at this time is open.
  virtual void ring_opened(std::int32_t pid, std::uint64_t announced_ns) = 0;
  /// A ring was opened that may never have been announced.
  virtual void ring_found(std::int32_t pid, const rtev_ring& ring) = 0;
  /// False if the process is known to have announced another ring after this time.
  virtual bool is_latest_ring(std::int32_t pid, std::uint64_t announced_ns) = 0;
  /// The saved copy of a ring that the process announced in [from_ns, to_ns], if there is one. Each copy is returned
  /// once.
  virtual std::optional<SavedRingFile> take_saved_ring(std::int32_t pid, std::uint64_t from_ns,
                                                       std::uint64_t to_ns) = 0;
};

/// For discovery without BPF.
class NoKernelControl final : public KernelControl {
 public:
  void track(std::int32_t, const rtev_tracked&) override {}
  void untrack(std::int32_t) override {}
  void ring_opened(std::int32_t, std::uint64_t) override {}
  void ring_found(std::int32_t, const rtev_ring&) override {}
  bool is_latest_ring(std::int32_t, std::uint64_t) override { return true; }
  std::optional<SavedRingFile> take_saved_ring(std::int32_t, std::uint64_t, std::uint64_t) override {
    return std::nullopt;
  }
};

}  // namespace rtev
