// SPDX-License-Identifier: MIT
// Detects in a program's memory whether its functions that write events are probed.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace rtev::test {

class ProbedCode {
 public:
  /// For a running OCaml program. Throws if its functions are not found.
  explicit ProbedCode(pid_t pid);

  /// True if the instruction is replaced by a breakpoint.
  bool is_probed() const;
  /// Waits until is_probed() has this value; returns false on timeout.
  bool becomes(bool probed) const;

 private:
  pid_t pid_;
  std::uint64_t address_ = 0;
  std::uint8_t original_ = 0;  ///< the byte in the file
};

}  // namespace rtev::test
