// SPDX-License-Identifier: MIT
// Directories for rings that were left behind by tracers which were killed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "inspect/procfs.hpp"

namespace rtev {

/// What the names of PrivateDir's directories begin with, before six more characters.
inline constexpr const char* private_dir_prefix = "rtev-bpf.";

/// Removes what PrivateDir created under `base` and no process uses any more: directories of this process's user, or of
/// `owner`, that only their user can enter, that no process holds a lock on as PrivateDir does, and that no process was
/// told by OCAML_RUNTIME_EVENTS_DIR; not before they are ten minutes old. Does nothing where other users could put
/// something in their place. Links are not followed. What cannot be removed stays; the work is bounded.
void sweep_stale_dirs(const std::string& base, std::optional<uid_t> owner, const Procfs& procfs = Procfs());

}  // namespace rtev
