// SPDX-License-Identifier: MIT
// A program that looks like one of OCaml 5.3 to who looks at it from outside, and waits until it is killed.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/processor.hpp"
#include "unit/enable/child.hpp"
#include "unit/inspect/elf_writer.hpp"

namespace rtev::enable {

/// What its file is like. Addresses are of the file; the kernel puts the program elsewhere, unless it has a base.
struct Lookalike {
  static constexpr std::uint64_t text = test::ElfShape::text_address, start = text + 0x100, default_hook = text + 0x200,
                                 thread_hook = text + 0x300;
  /// Words of the page that may be written.
  static constexpr std::uint64_t page = 0x4000, page_bytes = 4096, hook = page, blocking_hook = page + 8,
                                 enabled = page + 16, paused = page + 24, directory = page + 32;

  std::string version_text = "5.3.0";  ///< that the runtime says; empty: it says nothing
  std::uint64_t base = 0;              ///< 0: the kernel chooses
  std::string_view lacking{};          ///< a symbol
  std::vector<test::ElfSymbol> besides{};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> words{};  ///< address and content

  void write(const std::filesystem::path& path) const {
    std::ofstream(path, std::ios::binary) << test::write_elf(shape());
    ::chmod(path.c_str(), 0755);
  }
  test::ElfShape shape() const {
    std::string variables(page_bytes, '\0');
    for (const auto& [address, word] : words) test::detail::put(variables, address - page, word);
    if (!version_text.empty())
      variables.replace(page_bytes / 2, version_text.size() + said.size(), said + version_text);
    return {.type = static_cast<std::uint16_t>(base != 0 ? ET_EXEC : ET_DYN),
            .machine = own_processor.elf,
            .base = base,
            .interpreter = false,
            .pie_flag = base == 0,
            .symtab = symbols(),
            .rodata = std::move(variables),
            .is_writable = true,
            .code = waiting_code(),
            .tls_size = 0x1c};
  }

 private:
  inline static const std::string said = "The OCaml runtime, version ";

  std::vector<test::ElfSymbol> symbols() const {
    std::vector<test::ElfSymbol> all{{.name = "caml_runtime_events_start", .value = start},
                                     {.name = "caml_domain_external_interrupt_hook_default", .value = default_hook},
                                     {.name = "caml_thread_interrupt_hook", .value = thread_hook}};
    std::uint64_t address = text + 0x400;
    for (const char* name : {"caml_runtime_events_init", "caml_runtime_events_user_register",
                             "caml_ml_runtime_events_start", "caml_ml_runtime_events_path"})
      all.push_back({.name = name, .value = address += 0x20});
    for (const auto& [name, variable] : std::initializer_list<std::pair<const char*, std::uint64_t>>{
             {"caml_domain_external_interrupt_hook", hook},
             {"caml_enter_blocking_section_hook", blocking_hook},
             {"runtime_events_enabled", enabled},
             {"runtime_events_paused", paused},
             {"runtime_events_path", directory}})
      all.push_back({.name = name, .value = variable, .size = 8, .type = STT_OBJECT});
    for (test::ElfSymbol& symbol : all) symbol.value += base;
    all.push_back({.name = "caml_state", .value = 8, .size = 8, .type = STT_TLS});
    all.insert(all.end(), besides.begin(), besides.end());
    std::erase_if(all, [this](const test::ElfSymbol& symbol) { return symbol.name == lacking; });
    return all;
  }
  static std::string waiting_code() {
    using namespace std::string_literals;
    if (own_processor.elf == EM_X86_64) return "\xb8\x22\0\0\0\x0f\x05\xeb\xf7"s;  // pause(2) in a loop
    return "\0\0\0\x14"s;                                                          // a loop
  }
};

/// Runs such a program. `first`: before it is started.
class LookalikeChild : public Child {
 public:
  explicit LookalikeChild(
      const std::filesystem::path& file, const std::function<void()>& first = [] {})
      : Child(first, [&file] { ::execl(file.c_str(), "lookalike", nullptr); }) {
    go_on();
  }
};

}  // namespace rtev::enable
