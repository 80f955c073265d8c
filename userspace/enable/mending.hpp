// SPDX-License-Identifier: MIT
// How a new worker puts back hooks that were left replaced.
#pragma once

#include <cstdint>

namespace rtev::enable {

enum class Mending : std::uint8_t {
  side_by_side,  ///< a few at a time
  one_by_one,    ///< so that it is known at which process the worker ends
  none,
};

/// What became of the last worker.
enum class WorkerEnd : std::uint8_t {
  late,  ///< it waits for a process
  gone,
  not_started,  ///< it is gone, and was not done with the hooks
};

/// How the next worker does it if the last one did it so. `is_known`: the process at which that ended.
constexpr Mending next_mending(Mending last, WorkerEnd end, bool is_known) {
  // Even one by one nobody is to blame: it may be the hooks, and may be something else.
  if (end == WorkerEnd::not_started && last != Mending::side_by_side && !is_known) return Mending::none;
  // A thread that is left behind may end the worker later, so a start alone does not change it back.
  return end == WorkerEnd::late && last == Mending::side_by_side ? last : Mending::one_by_one;
}

}  // namespace rtev::enable
