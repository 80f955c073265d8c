// SPDX-License-Identifier: MIT
// The files of a program's rings: the one that it writes to, and those of earlier traces that are removed already.
#pragma once

#include <cstdint>
#include <optional>

#include "enable/target.hpp"
#include "inspect/enabled_list.hpp"

namespace rtev::enable {

/// The ring that the program writes to; nothing if it maps none whose file has a name.
std::optional<Mapping> present_ring(const Procfs& procfs, const HeldProcess& process);

/// Removes the file of the ring, with the rights of the program. The program goes on with the ring: the kernel keeps it
/// as long as it is mapped. False if the file stays: it could not be found, or not be removed, or the program was
/// started with OCAML_RUNTIME_EVENTS_PRESERVE. May wait for a second.
bool remove_present_ring(const Procfs& procfs, const Target& target);

/// Removes, in the same way, the ring's file of the program that a process ran before it executed this one.
void remove_left_ring(const Procfs& procfs, const Target& target, const EnabledNote& before);

/// Gives the memory of rings back whose files were removed: the runtime never unmaps them. For a program that has a new
/// ring, whose file has a name. Only files without a name that belong to the program's user are emptied, with the
/// rights of the program.
void free_removed_rings(const Procfs& procfs, const Target& target);

}  // namespace rtev::enable
