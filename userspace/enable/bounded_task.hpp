// SPDX-License-Identifier: MIT
// Runs what may wait for the memory of another process for ever.
#pragma once

#include <chrono>
#include <future>

namespace rtev::enable {

/// Runs a task on a thread of its own, for the memory of a process may not answer. False if it is not done in time: it
/// is left behind, and goes on until this process ends.
bool run_bounded(std::packaged_task<void()> task, std::chrono::nanoseconds limit);

/// Starts a task on a thread of its own. False if there can be no more threads.
bool run_detached(std::packaged_task<void()> task);

}  // namespace rtev::enable
