// SPDX-License-Identifier: MIT
// Which stacks are in the GC. Events say it only while a phase is open: the runtime begins the first one when it has
// stopped all domains, and tries for long where there are more domains than CPUs.
#pragma once

#include <cstdint>

#include "stream/records.hpp"
#include "stream/stacks.hpp"

namespace rtev {

/// True if a function by which OCaml's runtime enters the GC is on the stack, inside of the innermost OCaml function
/// or bytecode.
bool is_below_gc_entry(StackIndex stack, const StackTable& stacks);

/// Less CPU time in samples says no share: ten of them, at the usual rate.
inline constexpr std::uint64_t least_sampled_ns = 100'000'000;

/// Whether what its domain does is what the thread does: then it is in the GC while a phase of the domain is open.
bool acts_for_domain(const Sample& sample, SampleKind kind);

}  // namespace rtev
