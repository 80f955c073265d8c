// SPDX-License-Identifier: MIT
#include "enable/silent_processes.hpp"

#include <algorithm>

namespace rtev::enable {
namespace {

constexpr std::size_t max_by_user = 2;
constexpr std::size_t max_ends = 64;  // more than workers are replaced in an hour
constexpr std::uint64_t last_memory_ns = 3'600'000'000'000;

}  // namespace

void SilentProcesses::add(const Progress::Work& work, std::uint64_t now_ns) {
  OfUser& own = by_user_[work.user];
  if (!own.processes.empty() && now_ns >= own.forget_ns) {
    own.processes.clear();
    own.memory_ns = std::min(2 * own.memory_ns, last_memory_ns);
  }
  own.processes.emplace(work.pid, work.start_ticks);
  own.forget_ns = now_ns + own.memory_ns;
}

void SilentProcesses::add_end(const Progress::Work& work, std::uint64_t now_ns) {
  const std::pair process(work.pid, work.start_ticks);
  if (std::ranges::find(ends_, process) != ends_.end()) return add(work, now_ns);
  ends_.push_back(process);
  if (ends_.size() > max_ends) ends_.pop_front();
}

bool SilentProcesses::has_any_of(std::uint32_t user, std::uint64_t now_ns) const {
  const auto found = by_user_.find(user);
  return found != by_user_.end() && now_ns < found->second.forget_ns;
}

std::optional<std::string> SilentProcesses::reason(std::int32_t pid, std::uint64_t start_ticks, std::uint32_t user,
                                                   std::uint64_t now_ns) const {
  if (!has_any_of(user, now_ns)) return std::nullopt;
  const auto& processes = by_user_.at(user).processes;
  if (start_ticks == 0) {
    const auto stat = procfs_.stat(pid);
    if (!stat) return std::nullopt;
    start_ticks = stat->start_ticks;
  }
  if (processes.contains({pid, start_ticks})) return "its memory does not answer";
  if (processes.size() < max_by_user) return std::nullopt;
  return "the memory of other programs of its user does not answer";
}

}  // namespace rtev::enable
