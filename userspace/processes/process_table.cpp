// SPDX-License-Identifier: MIT
#include "processes/process_table.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/name_globs.hpp"

namespace rtev {

bool is_running(std::int32_t pid) {
  const UniqueFd process{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  return process && ::poll(&ended, 1, 0) == 0;
}

bool ProcessFilter::wants_pid(std::int32_t pid) const {
  return pid != ::getpid() && (pids.empty() || std::ranges::find(pids, pid) != pids.end());
}

bool ProcessFilter::wants(std::int32_t pid, const ProgramNames& names, bool followed) const {
  return wants_pid(pid) && (followed || !only_followed) && selects_name(name_globs, names);
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
  TracedProcess& inserted = processes_.insert_or_assign(pid, std::move(process)).first->second;
  set_inspecting(inserted, inserted.program.inspecting);
  return inserted;
}

void ProcessTable::set_inspecting(TracedProcess& process, std::optional<FileIdentity> file) {
  process.program.inspecting = file;
  if (file)
    inspecting_.insert(process.pid);
  else
    inspecting_.erase(process.pid);
}

ProcessInfo& ProcessTable::info(TracedProcess& process) {
  return process.index ? registry_.process(*process.index) : process.info;
}

const ProcessInfo& ProcessTable::info(const TracedProcess& process) const {
  return process.index ? registry_.process(*process.index) : process.info;
}

bool ProcessTable::traces(std::int32_t pid) const {
  const TracedProcess* const process = find(pid);
  return process != nullptr && process->index;
}

std::optional<ProcessTable::CurrentImage> ProcessTable::current_image(std::int32_t pid) const {
  const TracedProcess* const process = find(pid);
  if (process == nullptr || !process->index) return std::nullopt;
  return CurrentImage{.index = *process->index,
                      .user = process->user,
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
                  .user = process.user,
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

std::vector<std::int32_t> ProcessTable::waiting_for(const FileIdentity& file) const {
  std::vector<std::int32_t> waiting;
  for (const std::int32_t pid : inspecting_) {
    const TracedProcess* const process = find(pid);
    if (process != nullptr && process->program.inspecting == file) waiting.push_back(pid);
  }
  return waiting;
}

std::optional<std::uint64_t> ProcessTable::unnamed_since(std::uint64_t now_ns) const {
  std::optional<std::uint64_t> since;
  for (const auto* const pids : {&inspecting_, &asks_service_}) {
    for (const std::int32_t pid : *pids) {
      const TracedProcess* const process = find(pid);
      if (process != nullptr && waits_for_names(*process, now_ns)) since = earliest(since, process->since_ns);
    }
  }
  return since;
}

void ProcessTable::ask_service(ProcessQueries& queries, TracedProcess& process) {
  process.asks_service = true;
  asks_service_.insert(process.pid);
  queries.ask({.pid = process.pid, .service = true}, process.user,
              [this, index = *process.index, pid = process.pid, start_ticks = process.start_ticks](ProcessView view) {
                if (TracedProcess* const asked = find(pid, start_ticks); asked != nullptr && asked->index == index) {
                  asked->asks_service = false;
                  asks_service_.erase(pid);
                }
                // A process that is forgotten has no pid.
                if (ProcessInfo& info = registry_.process(index);
                    info.pid == pid && view.stat && view.stat->start_ticks == start_ticks)
                  info.service = std::move(view.service);
              });
}

void ProcessTable::ask_peak_memory(ProcessQueries& queries) {
  std::size_t left = Registry::remembered;
  for (const TracedProcess& process : processes()) {
    if (!process.index) continue;
    if (left-- == 0) return;
    queries.ask({.pid = process.pid, .peak_memory = true}, process.user,
                [this, index = *process.index, start_ticks = process.start_ticks](const ProcessView& view) {
                  if (view.peak_memory_bytes && view.stat && view.stat->start_ticks == start_ticks)
                    registry_.process(index).max_rss_bytes = *view.peak_memory_bytes;
                });
  }
}

}  // namespace rtev
