// SPDX-License-Identifier: MIT
// Reads a mapped file that its owner may truncate at any moment.
#pragma once

#include <cstddef>

namespace rtev {

/// Installs the SIGBUS handler, once for the process. Faults outside run_guarded() go to the previous handler.
void install_sigbus_guard();

/// Calls task(context). False if reading [begin, begin + size) meanwhile hit the end of the file: the task is then
/// aborted without running destructors. Thread-safe; not re-entrant.
bool run_guarded(const void* begin, std::size_t size, void (*task)(void*), void* context);

/// memcpy() from a mapping; false if the file ends before `size` bytes.
bool guarded_copy(void* to, const void* from, std::size_t size);

}  // namespace rtev
