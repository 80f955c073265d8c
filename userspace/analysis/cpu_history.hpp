// SPDX-License-Identifier: MIT
// Who had the cpus lately: whom a thread waited for that could run and did not.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "stream/records.hpp"

namespace rtev {

/// A time that a thread could have run in and did not.
struct CpuWait {
  /// Switches between threads of which neither is tracked may not be in the stream.
  enum class Had : std::uint8_t {
    throughout,
    first,  ///< and perhaps others after it
    last,   ///< and perhaps others before it
  };

  std::uint64_t ns = 0;
  std::int32_t cpu = -1;       ///< that it waited for; -1: not known
  std::optional<Thread> by{};  ///< who had that cpu; tid 0: nobody, it was idle
  Had had = Had::throughout;   ///< how much of that time `by` had it
};

/// A fold over the switches of the stream. Memory is bounded: the last turns on each cpu. One thread.
class CpuHistory {
 public:
  static constexpr std::size_t turns_of_a_cpu = 64, most_cpus = 4096;

  void see(std::uint64_t time_ns, const SchedSwitch& change);

  /// A switch was seen that concerns no thread that is tracked: so all of them are told.
  bool sees_all() const { return sees_all_; }

  /// Calls visit(const CpuWait&) for who had a cpu from `from_ns` to `to_ns`, which is not after the present. The waits
  /// sum up to that time.
  template <typename Visitor>
  void each(std::int32_t cpu, std::uint64_t from_ns, std::uint64_t to_ns, Visitor&& visit) const {
    std::uint64_t told_until = from_ns;
    const auto known = cpu < 0 ? cpus_.end() : cpus_.find(static_cast<std::uint32_t>(cpu));
    if (known != cpus_.end()) {
      const Turns& turns = known->second;
      for (std::size_t i = turns.count - std::min(turns.count, turns_of_a_cpu); i < turns.count && told_until < to_ns;
           ++i) {
        const Turn& turn = turns.turns[i % turns_of_a_cpu];
        const std::uint64_t begin = std::max(turn.begin_ns, told_until), end = std::min(turn.end_ns, to_ns);
        if (end <= begin) continue;
        if (begin > told_until) visit(CpuWait{.ns = begin - told_until, .cpu = cpu});
        visit(wait_of(turn, cpu, begin, end));
        told_until = end;
      }
    }
    if (told_until < to_ns) visit(CpuWait{.ns = to_ns - told_until, .cpu = cpu});
  }

 private:
  /// From a switch that was seen to the next one.
  struct Turn {
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0;  ///< of the one that lasts: the end of time
    Thread first{};            ///< came to the cpu at the begin
    Thread last{};             ///< left it at the end; another one where switches between were not seen
    bool gapless = false;      ///< a switch between others would have been seen
  };
  struct Turns {
    std::size_t count = 0;  ///< ever
    std::array<Turn, turns_of_a_cpu> turns{};
  };
  static CpuWait wait_of(const Turn& turn, std::int32_t cpu, std::uint64_t begin_ns, std::uint64_t end_ns);

  std::unordered_map<std::uint32_t, Turns> cpus_;
  bool sees_all_ = false;
};

}  // namespace rtev
