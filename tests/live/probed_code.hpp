// SPDX-License-Identifier: MIT
// Whether a program's functions that write events are probed, seen in its memory.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace rtev::test {

class ProbedCode {
 public:
  /// Of a running OCaml program. Throws where its functions cannot be found.
  explicit ProbedCode(pid_t pid);

  /// A breakpoint takes the place of an instruction.
  bool is_probed() const;
  /// Waits for it, as long as tests wait.
  bool becomes(bool probed) const;

 private:
  pid_t pid_;
  std::uint64_t address_ = 0;
  std::uint8_t original_ = 0;  ///< as it is in the file
};

}  // namespace rtev::test
