// SPDX-License-Identifier: MIT
// Finds out whether a process image runs OCaml, and which file contains its runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "helper/process_queries.hpp"
#include "inspect/inspector.hpp"
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
  ProgramIdentifier(ProcessQueries& queries, ProcessTable& processes, BinaryCache& cache, Inspector& inspector,
                    bool even_gone, std::function<std::uint64_t()> clock)
      : queries_(queries),
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
  void await_library(TracedProcess& process);
  /// Looks again at images that wait for a library, where it is their turn.
  void retry(std::uint64_t now_ns);
  /// The runtime of an image, if it is mapped by now.
  struct Looked {
    std::int32_t pid;
    std::uint64_t since_ns;  ///< TracedProcess::since_ns
    std::optional<MappedRuntime> runtime;
  };
  /// Images that were looked at since the last call. Continue those that still wait with found_runtime().
  std::vector<Looked> take_looked() { return std::exchange(looked_, {}); }
  Outcome found_runtime(TracedProcess& process, std::optional<MappedRuntime> runtime);
  /// When retry() has something to do again.
  std::optional<std::uint64_t> next_retry_ns() const;

 private:
  void look(TracedProcess& process);

  ProcessQueries& queries_;
  ProcessTable& processes_;
  BinaryCache& cache_;
  Inspector& inspector_;
  bool even_gone_;
  std::function<std::uint64_t()> clock_;
  std::set<std::int32_t> loading_;  ///< pids of images that wait for a library
  std::vector<Looked> looked_;
};

}  // namespace rtev
