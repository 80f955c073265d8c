// SPDX-License-Identifier: MIT
#include "processes/exit_tracker.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

namespace rtev {
namespace {

/// More aborts than this say nothing new.
constexpr std::size_t max_aborted_inspecting = 1024;

}  // namespace

bool ExitTracker::has_exited(const ProcessId& process) const {
  const auto exited = exited_.find(process.pid);
  return exited != exited_.end() && exited->second == process.start_ticks;
}

void ExitTracker::forget_gone(const std::unordered_set<std::int32_t>& alive) {
  std::erase_if(exited_, [&](const auto& entry) { return !alive.contains(entry.first); });
}

std::vector<ExitTracker::ProcessId> ExitTracker::confirm(std::uint64_t records_complete_until_ns,
                                                         const std::function<bool(const ProcessId&)>& is_current) {
  std::vector<ProcessId> confirmed;
  std::erase_if(suspected_, [&](const SuspectedExit& suspect) {
    if (!is_current(suspect.process)) return true;
    if (records_complete_until_ns <= suspect.noticed_ns) return false;
    if (std::ranges::find(confirmed, suspect.process) == confirmed.end()) confirmed.push_back(suspect.process);
    return true;
  });
  return confirmed;
}

void ExitTracker::expire_unresolved(std::uint64_t now_ns) {
  std::erase_if(exited_unresolved_, [&](const TracedProcess& process) { return now_ns > naming_deadline_ns(process); });
}

std::optional<std::uint64_t> ExitTracker::unnamed_since(std::uint64_t now_ns) const {
  std::optional<std::uint64_t> since;
  for (const TracedProcess& process : exited_unresolved_)
    if (waits_for_names(process, now_ns)) since = earliest(since, process.since_ns);
  return since;
}

void ExitTracker::note_end(const TracedProcess& process, std::int64_t wait_status) {
  if (wait_status < 0 || !WIFSIGNALED(wait_status) || WTERMSIG(wait_status) != SIGABRT || process.has_ring) return;
  if (process.program.binary)
    ++aborted_without_ring_;
  else if (process.program.inspecting && aborted_inspecting_.size() < max_aborted_inspecting)
    aborted_inspecting_.push_back(*process.program.inspecting);
}

std::vector<TracedProcess> ExitTracker::take_resolved(const FileIdentity& file,
                                                      const std::shared_ptr<const Binary>& binary) {
  const std::size_t aborted = std::erase(aborted_inspecting_, file);
  if (binary) aborted_without_ring_ += aborted;
  std::vector<TracedProcess> resolved;
  std::erase_if(exited_unresolved_, [&](TracedProcess& process) {
    if (process.program.inspecting != file) return false;
    process.program.binary = binary;
    resolved.push_back(std::move(process));
    return true;
  });
  return resolved;
}

}  // namespace rtev
