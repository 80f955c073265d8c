// SPDX-License-Identifier: MIT
// What differs by processor in programs and their stacks. Also bpf/arch.bpf.h has to know each processor.
#pragma once

#include <elf.h>

#include <array>
#include <cstdint>

namespace rtev {

struct Processor {
  std::uint16_t elf;  ///< e_machine in its files
  /// Types of relocations: an address in the file itself, that of a symbol, and the number of the library with a
  /// thread-local variable.
  std::uint32_t relative_relocation, symbol_relocation, tls_module_relocation;
  /// A program's own thread-local variables lie above the thread pointer and a header of so many bytes; 0: below it.
  std::uint64_t tls_header_bytes;
  std::uint64_t dtv_offset;  ///< from the thread pointer to the address of its dynamic thread vector (glibc)

  unsigned stack_pointer, pc, return_column;  ///< registers, by DWARF's numbers
  std::uint64_t kept;                         ///< registers that a function returns as it found them; bit n: number n
  bool has_link_register;  ///< a call leaves its return address in return_column, and not on the stack
  /// Of a return address that carries a signature: the address. 0: there are no signatures.
  std::uint64_t signed_address_mask;
};

inline constexpr Processor x86_64{.elf = EM_X86_64,
                                  .relative_relocation = R_X86_64_RELATIVE,
                                  .symbol_relocation = R_X86_64_64,
                                  .tls_module_relocation = R_X86_64_DTPMOD64,
                                  .tls_header_bytes = 0,
                                  .dtv_offset = 8,
                                  .stack_pointer = 7,
                                  .pc = 16,
                                  .return_column = 16,
                                  .kept = 0xf0c8,
                                  .has_link_register = false,
                                  .signed_address_mask = 0};

inline constexpr Processor arm64{.elf = EM_AARCH64,
                                 .relative_relocation = R_AARCH64_RELATIVE,
                                 .symbol_relocation = R_AARCH64_ABS64,
                                 .tls_module_relocation = R_AARCH64_TLS_DTPMOD,
                                 .tls_header_bytes = 16,
                                 .dtv_offset = 0,
                                 .stack_pointer = 31,
                                 .pc = 32,
                                 .return_column = 30,
                                 .kept = 0xbff80000,
                                 .has_link_register = true,
                                 .signed_address_mask = (std::uint64_t{1} << 48) - 1};

inline constexpr std::array processors{&x86_64, &arm64};

/// The processor that this program runs on.
#if defined(__x86_64__)
inline constexpr const Processor& own_processor = x86_64;
#elif defined(__aarch64__)
inline constexpr const Processor& own_processor = arm64;
#else
#error "rtev-bpf does not support this processor: see base/processor.hpp"
#endif

/// Nullptr for a processor that is not supported.
constexpr const Processor* find_processor(std::uint16_t elf) {
  for (const Processor* processor : processors)
    if (processor->elf == elf) return processor;
  return nullptr;
}

}  // namespace rtev
