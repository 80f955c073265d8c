// SPDX-License-Identifier: MIT
// Programs that are run through a dynamic loader (`ld.so PROGRAM`): to the kernel, the loader is the program.
#pragma once

#include <string_view>

#include "inspect/procfs.hpp"

namespace rtev {

/// True for the path of a dynamic loader: ld-linux-x86-64.so.2, ld-musl-x86_64.so.1, ld.so…
bool is_loader_path(std::string_view path);

/// True for a mapping of code that is no library's: in a process that a loader began, the program's.
bool is_loaded_program(const Mapping& mapping);

}  // namespace rtev
