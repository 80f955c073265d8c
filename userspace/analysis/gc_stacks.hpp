// SPDX-License-Identifier: MIT
// Which stacks are in the GC. Events say it only while a phase is open: the runtime begins the first one when it has
// stopped all domains, and tries for long where there are more domains than CPUs.
#pragma once

#include "stream/stacks.hpp"

namespace rtev {

/// True if a function by which OCaml's runtime enters the GC is on the stack, inside of the innermost OCaml function
/// or bytecode.
bool is_below_gc_entry(StackIndex stack, const StackTable& stacks);

}  // namespace rtev
