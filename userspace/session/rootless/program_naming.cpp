// SPDX-License-Identifier: MIT
#include "session/rootless/program_naming.hpp"

#include <utility>

#include "base/clock.hpp"

namespace rtev {

ProgramNaming::ProgramNaming(ProcessQueries& queries, ProcessTable& processes, Registry& registry, Calls calls)
    : processes_(processes),
      registry_(registry),
      calls_(std::move(calls)),
      inspector_(cache_, [](int, const std::shared_ptr<const Binary>&, std::uint32_t) { return true; }),
      identifier_(queries, processes_, cache_, inspector_, false, monotonic_ns) {}

void ProgramNaming::identify(TracedProcess& process, UniqueFd file) {
  settle(process, identifier_.identify(process, std::move(file)));
}

void ProgramNaming::keep_if_unnamed(TracedProcess process) {
  if (process.program.inspecting) ended_.push_back(std::move(process));
}

void ProgramNaming::tick(std::uint64_t now_ns) {
  for (const FileIdentity& file : inspector_.take_inspected()) {
    const auto binary = cache_.find(file).value_or(nullptr);
    for (const std::int32_t pid : processes_.waiting_for(file)) {
      TracedProcess& process = *processes_.find(pid);
      settle(process, identifier_.resume(process, binary));
    }
    std::erase_if(ended_, [&](TracedProcess& process) {
      if (process.program.inspecting != file) return false;
      process.program.binary = binary;
      add_to_info(process);
      return true;
    });
  }
  identifier_.retry(now_ns);
  for (auto& [pid, since_ns, runtime] : identifier_.take_looked()) {
    TracedProcess* const process = processes_.find(pid);
    if (process != nullptr && process->since_ns == since_ns)
      settle(*process, identifier_.found_runtime(*process, std::move(runtime)));
  }
}

/// Acts on what was found out about the program of a process.
void ProgramNaming::settle(TracedProcess& process, ProgramIdentifier::Outcome outcome) {
  if (outcome == ProgramIdentifier::Outcome::not_ocaml && !process.index) return calls_.on_other(process.pid);
  if (outcome != ProgramIdentifier::Outcome::found) return;
  calls_.on_ocaml(process);
  add_to_info(process);
}

void ProgramNaming::add_to_info(const TracedProcess& process) {
  if (!process.program.binary || !process.index) return;
  const RuntimeBinary& runtime = process.program.binary->runtime;
  ProcessInfo& info = registry_.process(*process.index);
  if (!runtime.family || info.family_source == FamilySource::forced) return;
  info.version = runtime.version;
  info.family = *runtime.family;
  info.family_source = FamilySource::symbols;
}

}  // namespace rtev
