// SPDX-License-Identifier: MIT
// Finds out whether a process image runs OCaml, and which file contains its runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/unique_fd.hpp"
#include "inspect/inspector.hpp"
#include "inspect/procfs.hpp"
#include "processes/process_table.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// Follows an image from its program file to the file that contains the runtime: the program itself, the program that a
/// dynamic loader runs, or a shared runtime. Files are inspected by the Inspector; meanwhile the image waits. Changes
/// only TracedProcess::program. One thread.
class ProgramIdentifier {
 public:
  enum class Outcome {
    waiting,    ///< for an inspection, or for a library to be mapped
    found,      ///< an OCaml program; ProgramState::binary is set
    unknown,    ///< perhaps an OCaml program, whose runtime was not found
    not_ocaml,  ///< nothing to trace
  };

  /// With `even_gone`, programs are identified also after their process has ended without a ring.
  ProgramIdentifier(Procfs procfs, const ProcessTable& processes, BinaryCache& cache, Inspector& inspector,
                    bool even_gone, std::function<std::uint64_t()> clock)
      : procfs_(std::move(procfs)),
        processes_(processes),
        cache_(cache),
        inspector_(inspector),
        even_gone_(even_gone),
        clock_(std::move(clock)) {}

  /// Begins with a file that may contain the runtime.
  Outcome identify(TracedProcess& process, Result<UniqueFd> file);
  /// Continues once the file that the image waited for is known; no binary: it is not an OCaml program.
  Outcome resume(TracedProcess& process, const std::shared_ptr<const Binary>& binary);

  /// A forked image waits for the same library as its parent.
  void await_library(const TracedProcess& process);
  /// Images that wait for a library and whose turn it is to be looked at again. Continue each with retry().
  std::vector<std::int32_t> due(std::uint64_t now_ns);
  Outcome retry(TracedProcess& process);
  /// When due() returns something again.
  std::optional<std::uint64_t> next_retry_ns() const;

 private:
  Outcome find_runtime(TracedProcess& process, const std::shared_ptr<const Binary>& program);

  Procfs procfs_;
  const ProcessTable& processes_;
  BinaryCache& cache_;
  Inspector& inspector_;
  bool even_gone_;
  std::function<std::uint64_t()> clock_;
  std::set<std::int32_t> loading_;  ///< pids of images that wait for a library
};

}  // namespace rtev
