// SPDX-License-Identifier: MIT
// Reading a file mapping whose owner may truncate the file at any moment.
#pragma once

#include <cstddef>

namespace rtev {

/// Installs the SIGBUS handler, once for the process. Faults outside of run_guarded() go to the handler that was there.
void install_sigbus_guard();

/// Calls task(context). False if reading [begin, begin + size) meanwhile hit the end of the file; the task is then
/// left in the middle, so it must own nothing that needs a destructor. Thread-safe; not re-entrant.
bool run_guarded(const void* begin, std::size_t size, void (*task)(void*), void* context);

/// memcpy() from a mapping; false if the file ends before `size` bytes.
bool guarded_copy(void* to, const void* from, std::size_t size);

}  // namespace rtev
