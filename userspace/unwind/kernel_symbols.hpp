// SPDX-License-Identifier: MIT
// Names of the kernel's functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rtev {

/// Threads may share it for reading.
class KernelSymbols {
 public:
  /// Reads /proc/kallsyms, which takes about a tenth of a second. Empty if the kernel shows no addresses: without
  /// CAP_SYSLOG, or with kernel.kptr_restrict=2.
  static KernelSymbols load(const std::filesystem::path& path = "/proc/kallsyms");

  bool is_empty() const { return symbols_.empty(); }
  struct Function {
    std::string_view name;
    std::uint64_t begin;
  };
  /// The function that an address of the kernel's code lies in. Empty if it is not known.
  Function at(std::uint64_t address) const;

 private:
  struct Symbol {
    std::uint64_t begin;
    std::uint32_t name;  ///< offset in names_; it ends with a NUL
  };
  void add_line(std::string_view line);

  std::vector<Symbol> symbols_;  ///< by address
  std::string names_;
};

}  // namespace rtev
