// SPDX-License-Identifier: MIT
#include "enable/silent_processes.hpp"

#include <algorithm>

namespace rtev::enable {
namespace {

constexpr std::size_t max_by_user = 2, max_ends_by_user = 4;
constexpr std::uint64_t ends_memory_ns = 3'600'000'000'000;
constexpr std::size_t max_ends = 64;  // more than workers are replaced in an hour
constexpr std::uint64_t last_memory_ns = 3'600'000'000'000;

}  // namespace

/// One more has happened: all of them are remembered longer.
SilentProcesses::OfUser& SilentProcesses::remember(std::uint32_t user, std::uint64_t now_ns) {
  OfUser& own = by_user_[user];
  if (own.forget_ns != 0 && now_ns >= own.forget_ns) {
    own.processes.clear();
    own.ends_workers = false;
    own.memory_ns = std::min(2 * own.memory_ns, last_memory_ns);
  }
  own.forget_ns = now_ns + own.memory_ns;
  return own;
}

void SilentProcesses::add(const Progress::Work& work, std::uint64_t now_ns) {
  remember(work.user, now_ns).processes.emplace(work.pid, work.start_ticks);
}

void SilentProcesses::add_end(const Progress::Work& work, std::uint64_t now_ns) {
  auto& ends_ns = by_user_[work.user].ends_ns;
  std::erase_if(ends_ns, [now_ns](std::uint64_t end_ns) { return now_ns - end_ns > ends_memory_ns; });
  ends_ns.push_back(now_ns);
  if (ends_ns.size() >= max_ends_by_user) remember(work.user, now_ns).ends_workers = true;
  const std::pair process(work.pid, work.start_ticks);
  if (std::ranges::find(ends_, process) != ends_.end()) return add(work, now_ns);
  ends_.push_back(process);
  if (ends_.size() > max_ends) ends_.pop_front();
}

void SilentProcesses::add_mend_end(const Progress::Work& work, std::uint64_t now_ns) {
  add_end(work, now_ns);
  by_user_[work.user].mend_ns = now_ns + ends_memory_ns;
}

bool SilentProcesses::may_mend(std::uint32_t user, std::uint64_t now_ns) const {
  const auto found = by_user_.find(user);
  return found == by_user_.end() || now_ns >= found->second.mend_ns;
}

bool SilentProcesses::has_any_of(std::uint32_t user, std::uint64_t now_ns) const {
  const auto found = by_user_.find(user);
  return found != by_user_.end() && now_ns < found->second.forget_ns;
}

std::optional<Refused> SilentProcesses::reason(std::int32_t pid, std::uint64_t start_ticks, std::uint32_t user,
                                               std::uint64_t now_ns) const {
  if (!has_any_of(user, now_ns)) return std::nullopt;
  const OfUser& own = by_user_.at(user);
  const auto silent = [](const char* why) {
    return Refused{
        .result = EnableResult::no_answer, .why = why, .hint = "its memory is a file of FUSE, or of a disk that hangs"};
  };
  if (start_ticks == 0) {
    const auto stat = procfs_.stat(pid);
    if (!stat) return std::nullopt;
    start_ticks = stat->start_ticks;
  }
  if (own.processes.contains({pid, start_ticks})) return silent("its memory does not answer");
  if (own.processes.size() >= max_by_user) return silent("the memory of other programs of its user does not answer");
  if (!own.ends_workers) return std::nullopt;
  return Refused{.result = EnableResult::no_answer,
                 .why = "the process that switches events on has ended too often at programs of its user",
                 .hint = "the log of the host may say why: it crashed, or was killed"};
}

}  // namespace rtev::enable
