// SPDX-License-Identifier: MIT
// ELF files shaped like OCaml programs of each version.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "inspect/binary.hpp"
#include "unit/inspect/elf_writer.hpp"

namespace rtev::test {

inline constexpr std::uint64_t text = ElfShape::text_address;

/// Global functions of the runtime from 5.0 up to 5.`minor`, each at an address of its own.
inline std::vector<ElfSymbol> global_symbols(int minor) {
  std::vector<ElfSymbol> symbols;
  std::uint64_t address = text;
  const auto add = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) symbols.push_back({.name = name, .value = address += 0x20});
  };
  add({"main", "caml_runtime_events_init", "caml_runtime_events_start", "caml_runtime_events_pause",
       "caml_runtime_events_resume", "caml_runtime_events_destroy", "caml_runtime_events_post_fork"});
  if (minor >= 1) add({"caml_runtime_events_user_register"});
  if (minor >= 2)
    add({"caml_ml_runtime_events_start", "caml_ml_runtime_events_pause", "caml_ml_runtime_events_resume"});
  if (minor >= 3) add({"caml_ml_runtime_events_path"});
  if (minor >= 4) add({"caml_domain_terminate"});
  if (minor >= 5) add({"caml_domain_count"});
  symbols.push_back({.name = "caml_state", .value = 8, .size = 8, .type = STT_TLS});
  return symbols;
}

inline std::vector<ElfSymbol> all_symbols(int minor) {
  auto symbols = global_symbols(minor);
  const auto add = [&](const char* name, std::uint64_t address, std::uint64_t size, std::uint8_t type = STT_FUNC) {
    symbols.push_back({.name = name, .value = address, .size = size, .type = type, .binding = STB_LOCAL});
  };
  add("stw_create_runtime_events", text + 0x800, 64);
  add("stw_teardown_runtime_events", text + 0x840, 64);
  add("backup_thread_func", text + 0x900, 0x100);
  add("caml_thread_tick", text + 0xa00, 0x80);
  add("domain_self", 0, 8, STT_TLS);
  add("runtime_events_paused", 0x7100, 8, STT_OBJECT);
  return symbols;
}

/// An unstripped program of OCaml 5.`minor`.
inline ElfShape program(int minor) {
  return {.dynsym = global_symbols(minor),
          .symtab = all_symbols(minor),
          .rodata = "OCAML_RUNTIME_EVENTS_START",
          .tls_size = 0x1c};
}

/// What remains of a runtime without symbols.
inline std::string runtime_texts() {
  std::string texts = "OCAML_RUNTIME_EVENTS_DIR";
  texts += '\0';
  texts += "OCAML_RUNTIME_EVENTS_START";
  texts += '\0';
  return texts + "%s/%ld.events";
}

/// inspect_binary() on a file that can be read.
inline std::optional<RuntimeBinary> inspect(const std::string& bytes) {
  const UniqueFd fd = memory_file(bytes);
  auto result = inspect_binary(fd.get());
  EXPECT_TRUE(result) << (result ? "" : result.error().why);
  return result ? std::move(*result) : std::nullopt;
}
inline std::optional<RuntimeBinary> inspect(const ElfShape& shape) {
  return inspect(write_elf(shape));
}

}  // namespace rtev::test
