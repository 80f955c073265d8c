// SPDX-License-Identifier: MIT
// Whether a program's functions that write events are probed, as seen in its memory.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace rtev::test {

class ProbedCode {
 public:
  /// For a running OCaml program. Throws if its functions cannot be found.
  explicit ProbedCode(pid_t pid);

  /// True if a breakpoint replaces the instruction.
  bool is_probed() const;
  /// Waits until is_probed() is this; false after `patience`.
  bool becomes(bool probed) const;

 private:
  pid_t pid_;
  std::uint64_t address_ = 0;
  std::uint8_t original_ = 0;  ///< byte in the file
};

}  // namespace rtev::test
