// SPDX-License-Identifier: MIT
#include "enable/silent_processes.hpp"

namespace rtev::enable {
namespace {

constexpr int max_by_user = 2;

}  // namespace

std::optional<uid_t> SilentProcesses::user_of(std::int32_t pid) const {
  const uid_t user = procfs_.user(pid);
  // Of a process that is gone the user is not known: nobody is charged for it.
  return procfs_.stat(pid) ? std::optional(user) : std::nullopt;
}

void SilentProcesses::add(std::int32_t pid) {
  const auto stat = procfs_.stat(pid);
  if (!stat || !processes_.emplace(pid, stat->start_ticks).second) return;
  if (const auto user = user_of(pid)) ++by_user_[*user];
}

std::optional<std::string> SilentProcesses::reason(std::int32_t pid, std::uint64_t start_ticks) const {
  if (processes_.empty()) return std::nullopt;
  if (start_ticks == 0) {
    const auto stat = procfs_.stat(pid);
    if (!stat) return std::nullopt;
    start_ticks = stat->start_ticks;
  }
  if (processes_.contains({pid, start_ticks})) return "its memory does not answer";
  const auto user = user_of(pid);
  const auto count = user ? by_user_.find(*user) : by_user_.end();
  if (count == by_user_.end() || count->second < max_by_user) return std::nullopt;
  return "the memory of other programs of its user does not answer";
}

}  // namespace rtev::enable
