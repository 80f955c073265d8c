// SPDX-License-Identifier: MIT
#include "enable/enabled_entries.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/subordinate_users.hpp"
#include "base/user_share.hpp"
#include "inspect/enabled_list.hpp"

namespace rtev::enable {

EnabledEntries::EnabledEntries(const Procfs& procfs, std::size_t max_entries)
    : max_entries_(max_entries), ended_(::epoll_create1(EPOLL_CLOEXEC)) {
  for (const NotedProcess& noted : forget_ended(procfs)) {
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, noted.pid, 0)));
    // The pidfd may be of a later process, if the one of the entry has ended meanwhile.
    const auto stat = procfs.stat(noted.pid);
    if (pidfd && stat && stat->start_ticks == noted.start_ticks)
      watch(noted.pid, {.start_ticks = noted.start_ticks, .user = procfs.user(noted.pid), .pidfd = std::move(pidfd)});
    else
      forget_enabled(noted.pid, noted.start_ticks);
  }
}

bool EnabledEntries::has_place_for(std::uint32_t user) const {
  const auto own = static_cast<std::size_t>(
      std::ranges::count_if(entries_, [user](const auto& entry) { return entry.second.user == user; }));
  return has_share(own, entries_.size(), max_entries_);
}

void EnabledEntries::add(const HeldProcess& process) {
  watch(process.pid(), {.start_ticks = process.start_ticks(),
                        .user = charged_user(process.credentials().user),
                        .pidfd = UniqueFd(::fcntl(process.pidfd().get(), F_DUPFD_CLOEXEC, 0))});
}

/// Without a descriptor for it the entry stays until the next run.
void EnabledEntries::watch(std::int32_t pid, Entry entry) {
  const auto known = entries_.find(pid);
  if (known != entries_.end() && known->second.start_ticks == entry.start_ticks) return;
  if (known != entries_.end()) forget(known);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<std::uint64_t>(pid)}};
  if (entry.pidfd && ::epoll_ctl(ended_.get(), EPOLL_CTL_ADD, entry.pidfd.get(), &event) == 0)
    entries_.emplace(pid, std::move(entry));
}

/// Others may hold the same pidfd: epoll would go on to report it.
void EnabledEntries::forget(Entries::iterator entry) {
  ::epoll_ctl(ended_.get(), EPOLL_CTL_DEL, entry->second.pidfd.get(), nullptr);
  entries_.erase(entry);
}

std::vector<std::int32_t> EnabledEntries::remove_ended() {
  std::vector<std::int32_t> pids;
  std::array<epoll_event, 64> events{};
  for (int count = 0; (count = ::epoll_wait(ended_.get(), events.data(), events.size(), 0)) > 0;) {
    for (int i = 0; i < count; ++i) {
      const auto entry = entries_.find(static_cast<std::int32_t>(events.at(static_cast<std::size_t>(i)).data.u64));
      if (entry == entries_.end()) continue;
      forget_enabled(entry->first, entry->second.start_ticks);
      pids.push_back(entry->first);
      forget(entry);
    }
  }
  return pids;
}

}  // namespace rtev::enable
