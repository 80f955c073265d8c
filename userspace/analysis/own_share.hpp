// SPDX-License-Identifier: MIT
// What the tracer itself cost the traced programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/json_writer.hpp"
#include "base/text_buffer.hpp"
#include "stream/sink.hpp"

namespace rtev {

struct OwnFigures {
  std::uint64_t cpu_ns = 0;           ///< of the tracer without its helpers; 0: unknown
  bool switches_seen = false;         ///< else waits are unknown
  std::uint64_t waits = 0;            ///< of traced threads for a cpu that the tracer had
  std::uint64_t waited_ns = 0;        ///< in all
  std::uint64_t longest_wait_ns = 0;  ///< of them
};

/// A fold over the scheduler events: how long traced threads were runnable while a thread of the tracer had their cpu.
/// A lower bound: counts only what is certain, that the same thread of the tracer entered and left the cpu, and that
/// the traced thread ran there next. The tracer is known by the names of its processes, so others with such a name
/// count, too. Memory is bounded. One thread.
class OwnShare {
 public:
  void header(const RunHeader& header);
  /// Ignores all events but switches, wakeups and their losses.
  void add(const Event& event, const Batch& batch);
  void summary(const RunSummary& summary) { figures_.cpu_ns = summary.own_cpu_ns; }

  const OwnFigures& figures() const { return figures_; }

 private:
  static constexpr std::size_t max_cpus = 4096, max_waits = std::size_t{1} << 16;

  struct Cpu {
    std::int32_t tid = 0;  ///< of the tracer's thread that entered it last; 0: it is another's
    std::uint64_t since_ns = 0;
    std::uint64_t ran_ns = 0;  ///< the tracer, until since_ns
    std::uint64_t until(std::uint64_t now_ns) const {
      return ran_ns + (tid != 0 && now_ns > since_ns ? now_ns - since_ns : 0);
    }
  };
  struct Wait {
    std::uint32_t cpu;
    std::uint64_t ran_ns;  ///< the tracer there, when the wait began
  };

  bool is_own(const Thread& thread) const;
  void add_switch(const SchedSwitch& change, std::uint64_t time_ns);
  void begin_wait(const Thread& thread, std::uint32_t cpu, std::uint64_t time_ns);
  void end_wait(const Thread& thread, std::uint32_t cpu);

  std::string name_;  ///< of the tracer's threads
  OwnFigures figures_;
  std::unordered_map<std::uint32_t, Cpu> cpus_;
  std::unordered_map<std::int32_t, Wait> waits_;  ///< by tid
};

/// A line for people, if the tracer took a hundredth of a cpu and more than its start does, if threads waited for it
/// for a hundredth of the time, or if one did for a millisecond.
void add_own_share(TextBuffer& out, const OwnFigures& figures, std::uint64_t duration_ns);

/// The member "self".
void add_own_share(JsonWriter& json, const OwnFigures& figures);

}  // namespace rtev
