// SPDX-License-Identifier: MIT
// A program that the tracer probes, as an attacker sees it.
#pragma once

#include <filesystem>
#include <string>

namespace rtev::hostile {

/// A program of OCaml whose file this process has mapped, for as long as it lives.
class ProbedProgram {
 public:
  explicit ProbedProgram(const std::filesystem::path& program);

  /// Runs it with a ring in this directory, until this process ends. It waits for its first command.
  void run(const std::filesystem::path& rings) const;
  /// True once its code has breakpoints, which the kernel sets in every mapping.
  bool is_probed() const;
  /// Maps it once more.
  const void* map() const;

 private:
  std::filesystem::path program_;
  int file_;
  std::string bytes_;
  const void* mapping_;
};

}  // namespace rtev::hostile
