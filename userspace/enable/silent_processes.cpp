// SPDX-License-Identifier: MIT
#include "enable/silent_processes.hpp"

namespace rtev::enable {
namespace {

constexpr int max_by_user = 2;

}  // namespace

void SilentProcesses::add(const Progress::Work& work) {
  if (processes_.emplace(work.pid, work.start_ticks).second) ++by_user_[work.user];
}

std::optional<std::string> SilentProcesses::reason(std::int32_t pid, std::uint64_t start_ticks,
                                                   std::uint32_t user) const {
  if (processes_.empty()) return std::nullopt;
  if (start_ticks == 0) {
    const auto stat = procfs_.stat(pid);
    if (!stat) return std::nullopt;
    start_ticks = stat->start_ticks;
  }
  if (processes_.contains({pid, start_ticks})) return "its memory does not answer";
  const auto count = by_user_.find(user);
  if (count == by_user_.end() || count->second < max_by_user) return std::nullopt;
  return "the memory of other programs of its user does not answer";
}

}  // namespace rtev::enable
