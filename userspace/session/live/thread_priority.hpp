// SPDX-License-Identifier: MIT
// The priority of the thread that reads rings.
#pragma once

namespace rtev {

/// The highest of ordinary priorities, as a nice value.
inline constexpr int default_priority = -20;

/// Has the calling thread scheduled soon after it wakes up. On a busy host it must not wait for longer than rings last:
/// one of 2^16 words may fill up in three milliseconds. With less than the highest of ordinary priorities, its share of
/// a CPU that thousands of threads want to use would be too small. Where that is not allowed nothing changes. Not
/// inherited.
void raise_thread_priority(int nice);

}  // namespace rtev
