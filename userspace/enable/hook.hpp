// SPDX-License-Identifier: MIT
// The hook that OCaml's runtime calls where it may run other code, replaced for some milliseconds.
#pragma once

#include <cstdint>

#include "enable/process_memory.hpp"

namespace rtev::enable {

/// A hook that was replaced, and what it takes to put it back. Addresses are of the process.
struct ReplacedHook {
  std::uint64_t address = 0;
  std::uint64_t original = 0, replacement = 0;
  /// Until the threads library is initialised, `witness` holds `witness_before`; the hook belongs to the library then,
  /// and has to be `thread_hook`. 0 where the program has no such library.
  std::uint64_t thread_hook = 0, witness = 0, witness_before = 0;
  /// The word that asks the domain to call the hook. The library's hook clears it, OCaml's default does not: it has to
  /// be 0 then, or the domain calls it for ever where it is about to block. 0: there is no such word.
  std::uint64_t request = 0;

  bool operator==(const ReplacedHook&) const = default;
};

/// What the journal says of a hook. Nothing is done on its word: see own_hook().
struct ClaimedHook {
  ReplacedHook hook;

  bool operator==(const ClaimedHook&) const = default;
};

/// Puts the hook back, and withdraws the request, if the hook is still the replacement. If it is not, the program has
/// set it, or it is put back already. False if the memory cannot be read or written: the program ended.
bool put_back(const ProcessMemory& memory, const ReplacedHook& hook);

/// Withdraws the request. For who made it, after the hook is put back: somebody else may have done that before.
void withdraw_request(const ProcessMemory& memory, const ReplacedHook& hook);

}  // namespace rtev::enable
