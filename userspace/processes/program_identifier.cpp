// SPDX-License-Identifier: MIT
#include "processes/program_identifier.hpp"

#include <algorithm>
#include <utility>

namespace rtev {
namespace {

/// A program's libraries are mapped within a millisecond, unless something delays it. A program that is only named like
/// a loader never maps any.
constexpr std::uint64_t min_loading_wait_ns = 500'000, max_loading_wait_ns = 60'000'000'000;

}  // namespace

ProgramIdentifier::Outcome ProgramIdentifier::identify(TracedProcess& process, Result<UniqueFd> file) {
  if (!file || !*file) return resume(process, nullptr);
  const auto identity = BinaryCache::identify(file->get());
  if (!identity) return resume(process, nullptr);
  if (!process.program.exe) process.program.exe = *identity;
  if (const auto known = cache_.find(*identity)) {
    if (*known) inspector_.prepare(std::move(*file), *known, process.user);
    return resume(process, *known);
  }
  if (!inspector_.inspect(std::move(*file), *identity, process.user, process.has_ring)) return resume(process, nullptr);
  processes_.set_inspecting(process, *identity);
  return Outcome::waiting;
}

ProgramIdentifier::Outcome ProgramIdentifier::resume(TracedProcess& process,
                                                     const std::shared_ptr<const Binary>& binary) {
  processes_.set_inspecting(process, std::nullopt);
  // Without a ring it wrote nothing that could be read now.
  if (!process.index && !even_gone_ && !processes_.is_alive(process)) return Outcome::not_ocaml;
  if (binary && !binary->runtime.needs_library) {
    process.program.binary = binary;
    return Outcome::found;
  }
  if (!process.has_ring && !binary && !process.program.by_loader) return Outcome::not_ocaml;
  // The runtime is in a library or in an unknown file, since the image has a ring or needs a shared runtime. If only
  // the loader was inspected, the program is still to be found.
  if (process.program.library_tried) return process.has_ring ? Outcome::unknown : Outcome::not_ocaml;
  process.program.loading = {.program = binary, .due_ns = 0, .wait_ns = 0};
  look(process);
  return Outcome::waiting;
}

/// Looks for the shared runtime; before that, for the program that a loader runs.
void ProgramIdentifier::look(TracedProcess& process) {
  forget({process.program.loading->due_ns, process.pid, process.user});
  process.program.loading->asked = true;
  queries_.ask(
      {.pid = process.pid,
       .runtime = process.program.by_loader ? ProcessQuery::Runtime::loaded_program : ProcessQuery::Runtime::library},
      process.user, [this, pid = process.pid, since_ns = process.since_ns](ProcessView view) {
        looked_.push_back({.pid = pid, .since_ns = since_ns, .runtime = std::move(view.runtime)});
      });
}

ProgramIdentifier::Outcome ProgramIdentifier::found_runtime(TracedProcess& process,
                                                            std::optional<MappedRuntime> runtime) {
  ProgramState& state = process.program;
  if (!state.loading || !state.loading->asked) return Outcome::waiting;
  ProgramState::Loading loading = *std::exchange(state.loading, {});
  if (runtime) {
    // The program that a loader runs may need a shared runtime in its turn.
    if (!std::exchange(state.by_loader, false)) state.library_tried = true;
    state.runtime_begin = runtime->begin;
    return identify(process, std::move(runtime->fd));
  }
  if ((loading.program || state.by_loader) && !process.has_ring) {
    if (!process.index && !even_gone_ && !processes_.is_alive(process)) return Outcome::not_ocaml;
    loading.wait_ns = loading.wait_ns == 0 ? min_loading_wait_ns : std::min(2 * loading.wait_ns, max_loading_wait_ns);
    loading.due_ns = clock_() + loading.wait_ns;
    loading.asked = false;
    state.loading = std::move(loading);
    schedule(process);
    return Outcome::waiting;
  }
  state.library_tried = true;
  return Outcome::unknown;
}

void ProgramIdentifier::await_library(TracedProcess& process) {
  if (!process.program.loading) return;
  process.program.loading->asked = false;
  schedule(process);
}

void ProgramIdentifier::schedule(const TracedProcess& process) {
  std::size_t& of_user = waiting_of_user_[process.user];
  if (of_user >= max_waiting_of_user) return;
  of_user += waiting_.insert({process.program.loading->due_ns, process.pid, process.user}).second;
}

void ProgramIdentifier::forget(const Waiting& waiting) {
  if (waiting_.erase(waiting) == 0) return;
  const auto of_user = waiting_of_user_.find(waiting.user);
  if (--of_user->second == 0) waiting_of_user_.erase(of_user);
}

void ProgramIdentifier::note_ring(TracedProcess& process) {
  if (process.program.loading && !process.program.loading->asked) look(process);
}

void ProgramIdentifier::retry(std::uint64_t now_ns) {
  while (!waiting_.empty() && waiting_.begin()->due_ns <= now_ns) {
    const Waiting due = *waiting_.begin();
    forget(due);
    TracedProcess* const process = processes_.find(due.pid);
    if (process == nullptr || !process->program.loading) continue;
    const ProgramState::Loading& loading = *process->program.loading;
    if (!loading.asked && loading.due_ns == due.due_ns) look(*process);  // else it is of an image before
  }
}

std::optional<std::uint64_t> ProgramIdentifier::next_retry_ns() const {
  return waiting_.empty() ? std::nullopt : std::optional(waiting_.begin()->due_ns);
}

}  // namespace rtev
