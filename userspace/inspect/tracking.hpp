// SPDX-License-Identifier: MIT
// Where the variables and functions of a binary are in the memory of a process that runs it.
#pragma once

#include <cstdint>

#include "bpf/records.h"
#include "inspect/binary_cache.hpp"
#include "inspect/procfs.hpp"

namespace rtev {

/// What BPF needs to find the domains of a process's threads. The slot is left 0.
rtev_tracked tracking_of(std::int32_t pid, const Procfs& procfs, const Binary& binary);

/// True if the runtime of the process has paused its events, as far as its memory shows it. Needed only for programs
/// that ran before their functions were probed.
bool has_paused_events(std::int32_t pid, const Procfs& procfs, const RuntimeBinary& runtime);

}  // namespace rtev
