// SPDX-License-Identifier: MIT
// The files of a program's rings: the one that it writes to, and those of earlier traces that are removed already.
#pragma once

#include <string>

#include "enable/target.hpp"

namespace rtev::enable {

/// The path of the ring's file as the kernel names it; empty if the program maps none that has a name. May hold any
/// bytes.
std::string ring_path(const Procfs& procfs, const Target& target);

/// Removes the file of the ring, with the rights of the program. The program goes on with the ring: the kernel keeps it
/// as long as it is mapped. False if the file stays: it could not be found, or not be removed, or the program was
/// started with OCAML_RUNTIME_EVENTS_PRESERVE. May wait for a second.
bool remove_ring_file(const Procfs& procfs, const Target& target);

/// Gives the memory of rings back whose files were removed: the runtime never unmaps them. For a program whose events
/// are off, or that has a new ring.
void free_removed_rings(const Procfs& procfs, const Target& target);

}  // namespace rtev::enable
