// SPDX-License-Identifier: MIT
#include "processes/program_identifier.hpp"

#include <algorithm>
#include <utility>

#include "inspect/proc_lines.hpp"

namespace rtev {
namespace {

/// A program's libraries are mapped within a millisecond, unless something delays it.
constexpr std::uint64_t min_loading_wait_ns = 500'000, max_loading_wait_ns = 1'000'000'000;

}  // namespace

ProgramIdentifier::Outcome ProgramIdentifier::identify(TracedProcess& process, Result<UniqueFd> file) {
  if (!file || !*file) return resume(process, nullptr);
  const auto identity = BinaryCache::identify(file->get());
  if (!identity) return resume(process, nullptr);
  if (!process.program.exe) process.program.exe = *identity;
  if (const auto known = cache_.find(*identity)) {
    if (*known) inspector_.prepare(std::move(*file), *known);
    return resume(process, *known);
  }
  if (!inspector_.inspect(std::move(*file), *identity, process.has_ring)) return resume(process, nullptr);
  process.program.inspecting = *identity;
  return Outcome::waiting;
}

ProgramIdentifier::Outcome ProgramIdentifier::resume(TracedProcess& process,
                                                     const std::shared_ptr<const Binary>& binary) {
  process.program.inspecting.reset();
  // Without a ring it wrote nothing that could be read now.
  if (!process.index && !even_gone_ && !processes_.is_alive(process)) return Outcome::not_ocaml;
  if (binary && !binary->runtime.needs_library) {
    process.program.binary = binary;
    return Outcome::found;
  }
  if (!process.has_ring && !binary && !process.program.by_loader) return Outcome::not_ocaml;
  // The runtime is in a library or in an unknown file, since the image has a ring or needs a shared runtime. If only
  // the loader was inspected, the program is still to be found.
  if (!process.program.library_tried) return find_runtime(process, binary);
  return process.has_ring ? Outcome::unknown : Outcome::not_ocaml;
}

/// Continues with the shared runtime, which `program` needs if it is given; before that, with the program that a loader
/// runs.
ProgramIdentifier::Outcome ProgramIdentifier::find_runtime(TracedProcess& process,
                                                           const std::shared_ptr<const Binary>& program) {
  ProgramState& state = process.program;
  for (const Mapping& mapping : procfs_.mappings(process.pid)) {
    if (!(state.by_loader ? is_loaded_program(mapping) : is_runtime_library(mapping))) continue;
    // The program that a loader runs may need a shared runtime in its turn.
    if (!std::exchange(state.by_loader, false)) state.library_tried = true;
    state.loading.reset();
    return identify(process, procfs_.open_mapping(process.pid, mapping));
  }
  if ((program || state.by_loader) && !process.has_ring) {
    const std::uint64_t wait =
        state.loading ? std::min(2 * state.loading->wait_ns, max_loading_wait_ns) : min_loading_wait_ns;
    state.loading = {.program = program, .due_ns = clock_() + wait, .wait_ns = wait};
    loading_.insert(process.pid);
    return Outcome::waiting;
  }
  state.library_tried = true;
  state.loading.reset();
  return Outcome::unknown;
}

void ProgramIdentifier::await_library(const TracedProcess& process) {
  if (process.program.loading) loading_.insert(process.pid);
}

std::vector<std::int32_t> ProgramIdentifier::due(std::uint64_t now_ns) {
  std::vector<std::int32_t> due;
  std::erase_if(loading_, [&](std::int32_t pid) {
    const TracedProcess* const process = processes_.find(pid);
    if (process == nullptr || !process->program.loading) return true;
    if (now_ns >= process->program.loading->due_ns || process->has_ring) due.push_back(pid);
    return false;
  });
  return due;
}

ProgramIdentifier::Outcome ProgramIdentifier::retry(TracedProcess& process) {
  const auto program = process.program.loading->program;
  return resume(process, program);
}

std::optional<std::uint64_t> ProgramIdentifier::next_retry_ns() const {
  std::optional<std::uint64_t> next;
  for (const std::int32_t pid : loading_) {
    const TracedProcess* const process = processes_.find(pid);
    if (process == nullptr || !process->program.loading) continue;
    const std::uint64_t due = process->program.loading->due_ns;
    next = std::min(next.value_or(due), due);
  }
  return next;
}

}  // namespace rtev
