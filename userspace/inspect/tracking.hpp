// SPDX-License-Identifier: MIT
// Where the variables and functions of a binary are in the memory of a process that runs it.
#pragma once

#include <cstdint>
#include <optional>

#include "bpf/stack_records.h"
#include "inspect/binary_cache.hpp"

namespace rtev {

/// How far the kernel moved a program from where it was linked to be, by the lowest address of its code. Nothing if
/// that is not known (0).
std::optional<std::uint64_t> bias_of_program(const RuntimeBinary& program, std::uint64_t start_code);
/// The same for any file, by the address of its first page.
std::optional<std::uint64_t> bias_of_mapping(const RuntimeBinary& file, std::uint64_t begin);

/// What BPF needs to find the domains of a process's threads, and whether its events are paused. The slot is left 0.
rtev_tracked tracking_of(const Binary& binary, std::optional<std::uint64_t> bias);

/// What BPF needs to copy the stacks of a process. Without a bias there is no code by which OCaml's stack is found.
rtev_stack_target stack_target_of(const Binary& binary, std::optional<std::uint64_t> bias);

}  // namespace rtev
