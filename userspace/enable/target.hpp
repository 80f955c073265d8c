// SPDX-License-Identifier: MIT
// A running program whose events are to be switched on: where what is read and written lies, and whether it is what it
// should be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/subordinate_users.hpp"
#include "enable/held_process.hpp"
#include "enable/hook.hpp"
#include "enable/pausing.hpp"
#include "enable/suspects.hpp"
#include "inspect/binary.hpp"
#include "inspect/procfs.hpp"

namespace rtev::enable {

/// What a runtime does with its events. Of the flags that it keeps.
enum class EventsState : std::uint8_t { off, active, paused };

/// Addresses are of the process, and lie where they must in the file of its runtime.
struct Target {
  HeldProcess process;
  std::string comm{};
  FileIdentity file{};  ///< of the runtime
  Mapping code{};       ///< of the runtime, without its path
  RuntimeBinary runtime{};
  std::uint64_t bias = 0;  ///< of the runtime: address in the process less the one in the file
  DomainLayout layout{};

  std::uint64_t hook() const { return runtime.start_sites.hook + bias; }
  std::uint64_t start_function() const { return runtime.start_sites.start.begin + bias; }
  EventFlags flags() const {
    return {.enabled = runtime.start_sites.enabled_flag + bias, .paused = runtime.paused_flag + bias};
  }
  /// Of a function of the runtime or of its variables; 0 for 0.
  std::uint64_t place(std::uint64_t link_address) const { return link_address == 0 ? 0 : link_address + bias; }

  /// The whole words of StartSites::spare; begin is 0 if there are none.
  CodeRange spare() const;

  const ProcessMemory& memory() const { return process.memory(); }
  UsersProgram users_program() const { return {.file = file, .user = charged_user(process.credentials().user)}; }

  /// Whether the runtime has set up its events (caml_runtime_events_init). Before, which is for long where a program
  /// starts slowly, its hook need not be relocated yet, and it sets runtime_events_path anew.
  bool is_initialised() const;
  Checked<EventsState> events_state() const;
  /// Refuses if the process or its mappings are not as find_target() found them. To be called right before something is
  /// written.
  Checked<void> check_unchanged(const Procfs& procfs) const;
  /// Whether the other process runs the same program as the same user: a child that was forked, and nothing else.
  bool is_copy(const Target& child) const;
};

/// Looks at a process. Refuses one that runs no OCaml 5 program, a version of OCaml that is not known to be laid out as
/// it has to be, and what HeldProcess::may_write() refuses. May wait for as long as the owner of the process likes.
Checked<Target> find_target(const Procfs& procfs, HeldProcess process);

/// The present hook, if it is one of those that are known: as it is to be put back after it was replaced. Nothing of it
/// but the addresses and values of this very program.
Checked<ReplacedHook> plan_hook(const Target& target);

/// The hook of an entry of the journal, if it can be one of this program, as plan_hook() and find_target() find it now.
std::optional<ReplacedHook> own_hook(const Target& target, const ClaimedHook& claim);

/// The state of the domain that the thread with this thread pointer runs. Nothing if it runs none, or if a value there
/// is not what it should be.
std::optional<std::uint64_t> domain_state_of(const Target& target, std::uint64_t thread_pointer);

}  // namespace rtev::enable
