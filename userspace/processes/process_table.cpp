// SPDX-License-Identifier: MIT
#include "processes/process_table.hpp"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace rtev {

bool ProcessFilter::wants(std::int32_t pid, const std::string& comm, bool followed) const {
  if (pid == ::getpid() || (only_followed && !followed)) return false;
  if (!pids.empty() && std::ranges::find(pids, pid) == pids.end()) return false;
  const auto matches = [&](const std::string& glob) { return ::fnmatch(glob.c_str(), comm.c_str(), 0) == 0; };
  return name_globs.empty() || std::ranges::any_of(name_globs, matches);
}

TracedProcess* ProcessTable::find(std::int32_t pid) {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? nullptr : &found->second;
}

const TracedProcess* ProcessTable::find(std::int32_t pid) const {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? nullptr : &found->second;
}

TracedProcess* ProcessTable::find(std::int32_t pid, std::uint64_t start_ticks) {
  TracedProcess* const process = find(pid);
  return process != nullptr && process->start_ticks == start_ticks ? process : nullptr;
}

TracedProcess& ProcessTable::insert(TracedProcess process) {
  const std::int32_t pid = process.pid;
  return processes_.insert_or_assign(pid, std::move(process)).first->second;
}

ProcessInfo& ProcessTable::info(TracedProcess& process) {
  return process.index ? registry_.process(*process.index) : process.info;
}

const ProcessInfo& ProcessTable::info(const TracedProcess& process) const {
  return process.index ? registry_.process(*process.index) : process.info;
}

bool ProcessTable::is_alive(const TracedProcess& process) const {
  const auto stat = procfs_.stat(process.pid);
  if (!stat || stat->start_ticks != process.start_ticks) return false;
  return (stat->state != 'Z' && stat->state != 'X') || !procfs_.living_threads(process.pid).empty();
}

bool ProcessTable::traces(std::int32_t pid) const {
  const TracedProcess* const process = find(pid);
  return process != nullptr && process->index;
}

std::optional<ProcessTable::CurrentImage> ProcessTable::current_image(std::int32_t pid) const {
  const TracedProcess* const process = find(pid);
  if (process == nullptr || !process->index) return std::nullopt;
  return CurrentImage{.index = *process->index,
                      .began_ns = process->origin == ProcessAction::found ? 0 : process->since_ns};
}

std::vector<ProcessTable::Ringless> ProcessTable::ringless(std::uint32_t binary_id) const {
  std::vector<Ringless> found;
  for (const TracedProcess& process : processes()) {
    if (const auto ringless = as_ringless(process); ringless && ringless->binary == binary_id)
      found.push_back(*ringless);
  }
  return found;
}

std::optional<ProcessTable::Ringless> ProcessTable::ringless_process(std::int32_t pid) const {
  const TracedProcess* const process = find(pid);
  return process == nullptr ? std::nullopt : as_ringless(*process);
}

std::optional<ProcessTable::Ringless> ProcessTable::as_ringless(const TracedProcess& process) {
  if (!process.index || !process.rings.slots.empty() || !process.program.binary) return std::nullopt;
  return Ringless{.index = *process.index,
                  .binary = process.program.binary->id,
                  .since_ns = process.since_ns,
                  .began_then = process.origin != ProcessAction::found,
                  .forked = process.origin == ProcessAction::fork};
}

std::set<std::uint32_t> ProcessTable::ringless_binaries() const {
  std::set<std::uint32_t> ids;
  for (const TracedProcess& process : processes()) {
    if (process.program.binary && process.rings.slots.empty()) ids.insert(process.program.binary->id);
  }
  return ids;
}

std::set<std::uint32_t> ProcessTable::binaries_in_use() const {
  std::set<std::uint32_t> ids;
  for (const TracedProcess& process : processes()) {
    if (process.program.binary) ids.insert(process.program.binary->id);
  }
  return ids;
}

bool ProcessTable::is_inspecting() const {
  return std::ranges::any_of(processes(),
                             [](const TracedProcess& process) { return process.program.inspecting.has_value(); });
}

std::optional<std::uint64_t> ProcessTable::unnamed_since(std::uint64_t now_ns) const {
  std::optional<std::uint64_t> oldest;
  for (const TracedProcess& process : processes()) {
    if (const auto since = waits_for_names_since(process, now_ns)) oldest = std::min(oldest.value_or(*since), *since);
  }
  return oldest;
}

void ProcessTable::add_peak_memory() {
  std::size_t left = Registry::remembered;
  for (const TracedProcess& process : processes()) {
    if (!process.index) continue;
    if (left-- == 0) return;
    const auto bytes = procfs_.max_rss_bytes(process.pid);
    // Checked after the read: the pid may have a new owner.
    if (bytes && is_alive(process)) registry_.process(*process.index).max_rss_bytes = *bytes;
  }
}

}  // namespace rtev
