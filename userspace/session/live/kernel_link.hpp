// SPDX-License-Identifier: MIT
// Connects discovery to the BPF programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/cpu_share.hpp"
#include "kernel/kernel_source.hpp"
#include "processes/discovery_context.hpp"
#include "processes/rings/saved_rings.hpp"

namespace rtev {

/// Passes on what discovery asks for, and collects what BPF saved of rings. One thread.
class KernelLink final : public KernelControl {
 public:
  /// Called when a process is tracked that has no ring so far, with its binary.
  using OnRingless = std::function<void(std::uint32_t binary_id)>;
  /// Called when any process is tracked, or more is known of it.
  using OnTracked = std::function<void(std::int32_t pid)>;
  /// `saved_bytes`: what saved rings may take in memory.
  KernelLink(kernel::TrackedProcesses& control, kernel::SavedRingSource& source, OnTracked on_tracked,
             OnRingless on_ringless, std::size_t saved_bytes)
      : control_(control),
        source_(source),
        on_tracked_(std::move(on_tracked)),
        on_ringless_(std::move(on_ringless)),
        saved_(saved_bytes) {}

  void track(std::int32_t pid, const rtev_tracked& tracked) override;
  void untrack(std::int32_t pid) override { control_.untrack(pid); }
  void ring_opened(std::int32_t pid, std::uint64_t announced_ns) override { control_.ring_opened(pid, announced_ns); }
  void ring_found(std::int32_t pid, const rtev_ring& ring) override { control_.ring_found(pid, ring); }
  bool is_latest_ring(std::int32_t pid, std::uint64_t announced_ns) override {
    return control_.is_latest_ring(pid, announced_ns);
  }
  std::uint64_t announcements() override { return control_.announcements(); }
  bool is_being_changed(int fd, FileUse use) override { return control_.is_being_changed(fd, use); }
  void look_at_pages(std::span<PageRange> ranges) override { control_.look_at_pages(ranges); }
  std::optional<SavedRingFile> take_saved_ring(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns) override;

  /// Reads what BPF has saved so far.
  void collect_saved_rings();
  /// Rings that the process announced until then are not needed any more.
  void forget_saved_rings(std::int32_t pid, std::uint64_t until_ns) { saved_.forget(pid, until_ns); }

 private:
  kernel::TrackedProcesses& control_;
  kernel::SavedRingSource& source_;
  OnTracked on_tracked_;
  OnRingless on_ringless_;
  SavedRings saved_;
  CpuShare waits_{20, 20'000'000};  ///< for records that are not finished: rings fill up meanwhile
};

}  // namespace rtev
