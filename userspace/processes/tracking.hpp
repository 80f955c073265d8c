// SPDX-License-Identifier: MIT
// From facts about a binary to facts about a process that runs it: where things lie in its memory.
#pragma once

#include <cstdint>

#include "bpf/records.h"
#include "inspect/binary_cache.hpp"
#include "inspect/procfs.hpp"

namespace rtev {

/// What the kernel side needs to find the domains of a process's threads. The slot is left 0.
rtev_tracked tracking_of(std::int32_t pid, const Procfs& procfs, const Binary& binary);

/// True if the runtime of the process has its events paused, where that can be told from its memory. Only a program
/// that was running before its functions were probed needs to be asked.
bool has_paused_events(std::int32_t pid, const Procfs& procfs, const RuntimeBinary& runtime);

}  // namespace rtev
