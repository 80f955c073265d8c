// SPDX-License-Identifier: MIT
// Scheduler events as the kernel's ftrace has them: what Perfetto makes CPU rows, thread states and wakers of.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/perfetto/perfetto_packets.hpp"
#include "formats/viewer/trace_writer.hpp"

namespace rtev::perfetto {

/// Collects events by cpu and writes them in bundles. Perfetto requires that a switch leaves the thread that the switch
/// before it on that cpu entered: for switches that were not seen it gets some that are made up. Memory is bounded.
class Sched {
 public:
  explicit Sched(PacketWriter& packets) : packets_(packets) {}

  void sched_switch(std::uint64_t time, const SchedSwitch& change);
  /// `waker_cpu`: where the waker runs, if that is known.
  void waking(std::uint64_t time, const Wakeup& wakeup, std::optional<std::uint32_t> waker_cpu);
  /// The thread shown on a cpu leaves it unseen: the cpu is shown as idle from then on.
  void left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track);
  /// A thread is on a cpu that is shown as idle.
  void entered_unseen(std::uint64_t time, std::uint32_t cpu, const Thread& thread);
  /// A thread is gone: its id may be used again.
  void gone(std::uint64_t time, const Track& track);
  /// Writes the bundles.
  void flush();

 private:
  /// One side of a switch.
  struct Side {
    std::int32_t tid;
    std::string_view comm;
    std::int32_t priority;
  };

  static Side idle();
  static Side side(const Thread& thread);
  bool make_bundle(std::uint32_t cpu);
  void write_switch(std::uint32_t index, std::uint64_t time, const Side& prev, std::int64_t prev_state,
                    const Side& next);
  /// `fill` gets the event's message. `tid` is the thread that the cpu runs.
  template <typename Fill>
  void add_event(std::uint32_t index, std::uint64_t time, std::int32_t tid, Fill&& fill);
  void write_bundle(std::uint32_t index);

  PacketWriter& packets_;
  std::vector<TextBuffer> bundles_;  ///< by cpu
};

}  // namespace rtev::perfetto
