// SPDX-License-Identifier: MIT
// What an ELF file contains of an OCaml runtime. The file belongs to the user of the process: every number in
// it is checked, work and memory are bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/change_check.hpp"
#include "bpf/records.h"
#include "inspect/emitter_sites.hpp"
#include "inspect/runtime_layout.hpp"
#include "rtev/error.hpp"
#include "rtev/names.hpp"

namespace rtev {

/// Where a runtime function begins in the file, for a uprobe.
struct ProbePoint {
  rtev_probe function;
  std::uint64_t file_offset;
  bool operator==(const ProbePoint&) const = default;
};

/// Code of one function: [begin, end), link-time addresses; both 0 where not known.
struct CodeRange {
  std::uint64_t begin = 0, end = 0;
};

/// What it takes to have a runtime switch its events on (see enable/). Link-time addresses; 0 = not known.
struct StartSites {
  std::uint64_t hook = 0;           ///< caml_domain_external_interrupt_hook, a pointer to a function
  std::uint64_t default_hook = 0;   ///< caml_domain_external_interrupt_hook_default: what it points to at first
  std::uint64_t thread_hook = 0;    ///< caml_thread_interrupt_hook: what the threads library has it point to
  std::uint64_t blocking_hook = 0;  ///< caml_enter_blocking_section_hook: the threads library replaces it as well
  CodeRange start;                  ///< caml_runtime_events_start
  std::uint64_t enabled_flag = 0;   ///< runtime_events_enabled, a word
  std::uint64_t directory = 0;      ///< runtime_events_path, a pointer to a text
  /// What is left of the last page of its variables, which nothing uses; empty if something may.
  CodeRange spare{};
  std::uint64_t ring_words = 0;  ///< ring_size_words, an int
  /// As the assembly code of a native runtime has it, which leaves a symbol for each field.
  std::optional<DomainLayout> layout{};
};

/// What it takes to copy the stacks of a process. Code is given by link-time addresses.
struct StackSites {
  std::optional<std::uint64_t> allocation_offset{};  ///< in the file, of caml_alloc_small_dispatch
  CodeRange system;                                  ///< the runtime's assembly
  CodeRange raise;                                   ///< the part of it that raises exceptions
  StackLayout layout;
};

/// An ELF file that contains an OCaml 5 runtime, or needs one.
struct RuntimeBinary {
  std::string version;           ///< "5.0" to "5.4", "5.5" for 5.5 and later; empty without symbols
  std::optional<Family> family;  ///< that follows from the version
  /// As the runtime itself says it: "5.3.0", "5.2.0+ox". Only of bytecode, whose layout no symbol tells; else empty.
  std::string full_version{};
  bool is_oxcaml = false;          ///< it has functions that only OxCaml has
  std::vector<ProbePoint> probes;  ///< at most one per function
  /// Thread pointer + this = address of domain_self; 0 = not known. In a shared library, whose place each thread looks
  /// up by a number, from one byte before the library's block: so 0 is free there, too.
  std::int64_t domain_self_tls = 0;
  std::int64_t caml_state_tls = 0;    ///< likewise caml_state
  std::uint64_t tls_module_word = 0;  ///< of a shared library: link-time address of the word that holds that number
  std::uint32_t id_offset = 0;        ///< of the domain id in caml_state's block, by version; 0 = not known
  std::uint64_t paused_flag = 0;      ///< link-time address of runtime_events_paused, a word; 0 = not known
  StartSites start_sites;
  StackSites stack_sites;
  std::vector<EmitterPoint> emitters;  ///< each function that writes events, or none
  CodeRange backup_thread;             ///< backup_thread_func
  CodeRange tick_thread;               ///< caml_thread_tick
  std::uint64_t code_begin = 0;        ///< lowest p_vaddr of an executable PT_LOAD
  std::uint64_t link_base = 0;         ///< p_vaddr of the PT_LOAD with file offset 0, rounded down to a page
  bool shared_library = false;         ///< a shared runtime, not a program
  /// A program that needs a shared runtime, of OCaml 5 or of another version. The other members are not set.
  bool needs_library = false;
};

/// True for what names a shared OCaml runtime: a file libasmrun*.so or libcamlrun*.so.
bool is_runtime_library_path(std::string_view path);

/// Looks into an open ELF file. Nothing if it is no OCaml 5 program (not ELF, another language, OCaml 4); an error
/// if it could not be read: EAGAIN while it is being changed. Does not move the descriptor's offset. Thread-safe.
Result<std::optional<RuntimeBinary>> inspect_binary(int fd, const ChangeCheck& check = {});

}  // namespace rtev
