// SPDX-License-Identifier: MIT
// Scheduler events as the kernel's ftrace has them: what Perfetto makes CPU rows, thread states and wakers of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/perfetto/perfetto_packets.hpp"
#include "formats/viewer/trace_writer.hpp"

namespace rtev::perfetto {

/// Gathers events by cpu and writes them in bundles. On each cpu a switch leaves the thread that the one before
/// entered: where that is not what happened, because nobody saw it, a switch is made up. Memory is bounded.
class Sched {
 public:
  explicit Sched(PacketStream& packets) : packets_(packets) {}

  void sched_switch(std::uint64_t time, const SchedSwitch& change);
  void waking(std::uint64_t time, const Wakeup& wakeup);
  /// The thread shown on a cpu leaves it.
  void left_cpu(std::uint64_t time, std::uint32_t cpu, const Track& track);
  /// A thread is gone: its id may be used again.
  void gone(std::uint64_t time, const Track& track);
  /// Writes the bundles.
  void flush();

 private:
  static constexpr std::int32_t nobody = -1;  ///< no switch was written yet
  struct Cpu {
    std::string bundle{};
    std::int32_t tid = nobody;
  };
  /// One side of a switch.
  struct Side {
    std::int32_t tid;
    std::string_view comm;
    std::int32_t priority;
  };

  static Side idle();
  Cpu* cpu_at(std::uint32_t cpu);
  void write_switch(std::uint32_t index, std::uint64_t time, const Side& prev, std::int64_t prev_state,
                    const Side& next);
  /// `fill` gets the event's message. `tid` is the thread that the cpu runs.
  template <typename Fill>
  void add_event(std::uint32_t index, std::uint64_t time, std::int32_t tid, Fill&& fill);
  void write_bundle(std::uint32_t index);

  PacketStream& packets_;
  std::vector<Cpu> cpus_;
};

}  // namespace rtev::perfetto
