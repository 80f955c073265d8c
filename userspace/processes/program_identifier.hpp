// SPDX-License-Identifier: MIT
// Finds out whether a process image runs OCaml, and which file contains its runtime.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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

  /// Images of one user that wait for a library. Further ones are looked at once, and again when they have a ring.
  static constexpr std::size_t max_waiting_of_user = 512;

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
  /// Looks again at an image that waits for a library: its ring shows that the runtime is there.
  void note_ring(TracedProcess& process);
  /// Looks again at images that wait for a library, where it is their turn. Costs nothing for the others.
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
  struct Waiting {
    std::uint64_t due_ns;
    std::int32_t pid;
    std::uint32_t user;
    auto operator<=>(const Waiting&) const = default;
  };
  void look(TracedProcess& process);
  void schedule(const TracedProcess& process);
  void forget(const Waiting& waiting);

  ProcessQueries& queries_;
  ProcessTable& processes_;
  BinaryCache& cache_;
  Inspector& inspector_;
  bool even_gone_;
  std::function<std::uint64_t()> clock_;
  std::set<Waiting> waiting_;                               ///< for a library; some images have ended
  std::map<std::uint32_t, std::size_t> waiting_of_user_{};  ///< how many of them
  std::vector<Looked> looked_;
};

}  // namespace rtev
