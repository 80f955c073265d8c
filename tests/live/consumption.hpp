// SPDX-License-Identifier: MIT
// What a running program takes of the machine.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace rtev::test {

/// Memory that a process and its descendants have for themselves, and that of its files in memory. Not what it maps of
/// others: their rings.
std::uint64_t memory_of(pid_t pid);

std::size_t descriptors_of(pid_t pid);

/// CPU time of a process and of its descendants that live.
std::chrono::duration<double> cpu_of(pid_t pid);

}  // namespace rtev::test
