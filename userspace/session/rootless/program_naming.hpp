// SPDX-License-Identifier: MIT
// Which programs processes run: what names their events.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "helper/process_queries.hpp"
#include "inspect/binary_cache.hpp"
#include "inspect/inspector.hpp"
#include "processes/process_table.hpp"
#include "processes/program_identifier.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// Has programs inspected in the background, and adds what is found to the registry. One thread.
class ProgramNaming {
 public:
  /// Called on that thread.
  struct Calls {
    std::function<void(TracedProcess&)> on_ocaml;    ///< adds it to the stream, if it is not part of it yet
    std::function<void(std::int32_t pid)> on_other;  ///< a process that is not part of the stream and no OCaml program
  };
  /// All must outlive the object.
  ProgramNaming(ProcessQueries& queries, ProcessTable& processes, Registry& registry, Calls calls);

  /// Begins with the file that the process runs. It may be gone afterwards, see Calls.
  void identify(TracedProcess& process, UniqueFd file);
  /// The process has a ring, so its runtime can be found.
  void note_ring(TracedProcess& process) { identifier_.note_ring(process); }
  /// An image that ended: it gets its names when its program is known.
  void keep_if_unnamed(TracedProcess process);
  /// Takes what was found out.
  void tick(std::uint64_t now_ns);

  BinaryCache& cache() { return cache_; }
  Inspector& inspector() { return inspector_; }
  const Inspector& inspector() const { return inspector_; }
  /// True while images wait for their names.
  bool has_unnamed() const { return processes_.is_inspecting() || !ended_.empty(); }
  /// When tick() has something to do, as far as only time decides.
  std::optional<std::uint64_t> next_tick_ns() const { return identifier_.next_retry_ns(); }

 private:
  void settle(TracedProcess& process, ProgramIdentifier::Outcome outcome);
  void add_to_info(const TracedProcess& process);

  ProcessTable& processes_;
  Registry& registry_;
  Calls calls_;
  BinaryCache cache_;
  Inspector inspector_;
  ProgramIdentifier identifier_;
  std::vector<TracedProcess> ended_;  ///< while their programs were being inspected
};

}  // namespace rtev
