// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "bpf/records.h"

namespace rtev {

/// Whether a uprobe can be attached to an open file, or detached, without delay. For that the kernel locks the memory
/// map of each process that maps the file. Meanwhile no process of the host can fork.
using MappingsCheck = std::function<rtev_mappings(int fd)>;

/// Asks the BPF program file_mappings, given by its descriptor. RTEV_MAPPINGS_FREE, too, if it cannot be asked. Takes
/// up to some milliseconds. Thread-safe.
rtev_mappings check_mappings(int program, int fd);

}  // namespace rtev
