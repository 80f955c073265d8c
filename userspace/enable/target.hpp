// SPDX-License-Identifier: MIT
// A running program whose events are to be switched on: where what is read and written lies, and whether it is what it
// should be.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "enable/hook.hpp"
#include "enable/pausing.hpp"
#include "enable/process_memory.hpp"
#include "enable/suspect_files.hpp"
#include "inspect/binary.hpp"
#include "inspect/procfs.hpp"
#include "stream/records.hpp"

namespace rtev::enable {

/// Why the events of a process are not switched on.
struct Refused {
  EnableResult result{};
  std::string why{};        ///< for people; may hold any bytes that the process chose
  std::string hint{};       ///< what the user can do
  bool is_passing = false;  ///< a moment later it may be otherwise
};
template <typename Value>
using Checked = std::expected<Value, Refused>;

/// Where the runtime of a version of OCaml has what is needed, in words.
struct VersionLayout {
  std::string_view version;
  DomainLayout state;  ///< caml_domain_state
  std::uint32_t
      state_in_domain;  ///< the pointer to the state in a domain's internal record, which begins with its number
};

/// What a runtime does with its events. Of the flags that it keeps.
enum class EventsState : std::uint8_t { off, active, paused };

/// Addresses are of the process, and lie where they must in the file of its runtime.
struct Target {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string comm{};
  ProgramFile file{};  ///< of the runtime
  ProcessMemory memory;
  RuntimeBinary runtime{};
  std::uint64_t bias = 0;                 ///< of the runtime: address in the process less the one in the file
  const VersionLayout* layout = nullptr;  ///< never null

  std::uint64_t hook() const { return runtime.start_sites.hook + bias; }
  std::uint64_t start_function() const { return runtime.start_sites.start.begin + bias; }
  EventFlags flags() const {
    return {.enabled = runtime.start_sites.enabled_flag + bias, .paused = runtime.paused_flag + bias};
  }
  /// Of a function of the runtime or of its variables; 0 for 0.
  std::uint64_t place(std::uint64_t link_address) const { return link_address == 0 ? 0 : link_address + bias; }

  Checked<EventsState> events_state() const;
};

/// Looks at a process. `start_ticks` tells it from others with its pid; 0: any. May wait for as long as its owner
/// likes.
Checked<Target> find_target(const Procfs& procfs, std::int32_t pid, std::uint64_t start_ticks);

/// The present hook, if it is one of those that are known: as it is to be put back after it was replaced.
Checked<ReplacedHook> plan_hook(const Target& target);

/// The state of the domain that the thread with this thread pointer runs. Nothing if it runs none, or if a value there
/// is not what it should be.
std::optional<std::uint64_t> domain_state_of(const Target& target, std::uint64_t thread_pointer);

}  // namespace rtev::enable
