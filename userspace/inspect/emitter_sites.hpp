// SPDX-License-Identifier: MIT
// Where the runtime's functions that write events can be probed cheaply: a look at their first instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "bpf/records.h"

namespace rtev {

/// Where to probe a function that writes events, and how a probe sees there whether it will write.
struct EmitterPoint {
  rtev_emitter emitter;
  std::uint64_t file_offset;
  std::uint64_t address;  ///< the same place, at link time
  /// Address of the flag "events are enabled" less the probed one. 0: what is probed is the branch on that flag, where
  /// the processor's zero flag shows it.
  std::int64_t enabled;
  bool operator==(const EmitterPoint&) const = default;
};

/// A function's branch on the flag.
struct EnabledBranch {
  std::size_t offset;  ///< in the code
  std::uint64_t flag;  ///< link-time address of what is tested
  bool operator==(const EnabledBranch&) const = default;
};

/// Bytes of a function that find_enabled_branch() looks at, at the most.
inline constexpr std::size_t emitter_code_bytes = 40;

/// The branch, if x86-64 code that begins at this link-time address is, instruction by instruction, one of the forms
/// that compilers give these functions, up to a conditional jump on a word in memory. The kernel single-steps most
/// instructions that it has replaced by a breakpoint, but emulates jumps, in a tenth of the time. All arguments are
/// still in their registers there.
std::optional<EnabledBranch> find_enabled_branch(std::span<const std::byte> code, std::uint64_t address);

}  // namespace rtev
