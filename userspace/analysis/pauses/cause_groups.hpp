// SPDX-License-Identifier: MIT
// Long pauses by their cause: how many had which, and how long it lasted.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/pauses/blame.hpp"
#include "analysis/pauses/pause_details.hpp"
#include "base/text_buffer.hpp"

namespace rtev {

/// What pauses of a group have in common.
struct CauseKey {
  std::string comm{};  ///< of the program, any bytes
  Family family{};
  Cause cause = Cause::unknown;
  Why why = Why::none;
  std::int32_t domain = -1;              ///< that was waited for; -1: none, or unknown
  std::optional<std::uint16_t> phase{};  ///< of work and unknown: in which most of the pause was spent

  auto operator<=>(const CauseKey&) const = default;
};

/// A program whose threads had the CPU that the threads of pauses waited for.
struct CpuHolder {
  std::string comm{};  ///< any bytes; empty: the process of the pause itself
  std::uint64_t ns = 0;

  bool operator==(const CpuHolder&) const = default;
};

/// Pauses of a length and longer that have the same cause.
struct CauseGroup {
  CauseKey key{};
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;                   ///< of the pauses
  std::uint64_t least_ns = 0, greatest_ns = 0;  ///< of the part of a pause that the cause explains
  const PauseDetails* worst = nullptr;          ///< the longest one
  bool several_processes = false;               ///< of the program
  std::vector<CpuHolder> holders{};             ///< where a CPU was missing: the one that had it longest first
  std::uint64_t unknown_holders_ns = 0;         ///< that others had it: which ones is not known
  std::uint64_t unseen_ns = 0;                  ///< that nobody is known to have had it
  std::uint64_t idle_ns = 0;                    ///< that it was idle, e.g. by a limit on CPU time
};

/// What the pauses of a group waited for, in words. Names are escaped.
struct CauseName {
  const CauseGroup& group;
  SwitchesSeen seen = SwitchesSeen::all;
  bool with_program = false;  ///< "server/4242: " first, or "server: " for several processes
  bool with_time = false;     ///< how long it lasted: "(12.1ms to 31.2ms)"
};
void append(TextBuffer& out, const CauseName& name);

struct LongPauses {
  std::uint64_t least_ns = 0;  ///< the length
  std::uint64_t count = 0;
  std::vector<CauseGroup> groups{};  ///< the one with most time first
  std::uint64_t ungrouped = 0;       ///< of the count: there was no room for their groups
};

/// Counts pauses by cause, and by length in steps of 1, 2, 5, 10, ... from 1 µs on: so what is long can be decided at
/// the end. Memory is bounded. One thread.
class CauseGroups {
 public:
  /// It is counted when all domains have left its stop-the-world sections: only then it is known which was last.
  void add(const PauseDetails& pause);
  /// Words of a ring were lost, perhaps in the time of pauses that were added.
  void lose(const DomainLife& domain, const Loss& loss);
  /// The pauses of `min_ns` and longer: all that were added are. Without `min_ns` those of the greatest step that at
  /// least `enough` pauses reach; all if there are fewer. Refers to this object.
  LongPauses longest(std::uint64_t min_ns);

 private:
  static constexpr std::size_t step_count = 27;  ///< the last one is 100 s
  static constexpr std::uint64_t enough = 10;
  /// The worst pause of a group takes some KiB.
  static constexpr std::size_t max_groups = 256;
  static constexpr std::size_t max_holders = 8;  ///< of a group
  static constexpr std::size_t max_open = 64;

  struct Tally {
    std::uint64_t count = 0, total_ns = 0, least_ns = UINT64_MAX, greatest_ns = 0;

    void add(const Tally& other);
  };
  using Steps = std::array<Tally, step_count>;
  struct Group {
    Steps steps{};
    PauseDetails worst{};
    bool several_processes = false;
    using Times = std::array<std::uint64_t, step_count>;  ///< ns
    std::map<std::string, Times, std::less<>> holders{};  ///< by CpuHolder::comm
    Times unknown_holders{}, unseen{}, idle{};
  };

  void count(const PauseDetails& pause);
  static std::size_t step_of(std::uint64_t ns);
  static void add_holders(Group& group, std::size_t step, const PauseDetails& pause, const Blame& blame);
  static std::uint64_t sum_from(const Group::Times& times, std::size_t first_step);
  static std::vector<CpuHolder> holders_of(const Group& group, std::size_t first_step);
  void drop_least();

  std::deque<PauseDetails> open_;  ///< whose sections went on when they ended, oldest first
  std::map<CauseKey, Group> groups_;
  Steps all_{};
};

}  // namespace rtev
