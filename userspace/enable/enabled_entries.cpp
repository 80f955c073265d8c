// SPDX-License-Identifier: MIT
#include "enable/enabled_entries.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "inspect/enabled_list.hpp"

namespace rtev::enable {

EnabledEntries::EnabledEntries(const Procfs& procfs) : ended_(::epoll_create1(EPOLL_CLOEXEC)) {
  for (const NotedProcess& noted : forget_ended(procfs)) {
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, noted.pid, 0)));
    // The pidfd may be of a later process, if the one of the entry has ended meanwhile.
    const auto stat = procfs.stat(noted.pid);
    if (pidfd && stat && stat->start_ticks == noted.start_ticks)
      watch(noted.pid, noted.start_ticks, std::move(pidfd));
    else
      forget_enabled(noted.pid, noted.start_ticks);
  }
}

void EnabledEntries::add(const HeldProcess& process) {
  watch(process.pid(), process.start_ticks(), UniqueFd(::fcntl(process.pidfd().get(), F_DUPFD_CLOEXEC, 0)));
}

/// Without a descriptor for it the entry stays until the next run.
void EnabledEntries::watch(std::int32_t pid, std::uint64_t start_ticks, UniqueFd pidfd) {
  const auto known = entries_.find(pid);
  if (known != entries_.end() && known->second.start_ticks == start_ticks) return;
  if (known != entries_.end()) forget(known);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<std::uint64_t>(pid)}};
  if (pidfd && ::epoll_ctl(ended_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) == 0)
    entries_.emplace(pid, Entry{.start_ticks = start_ticks, .pidfd = std::move(pidfd)});
}

/// Others may hold the same pidfd: epoll would go on to report it.
void EnabledEntries::forget(Entries::iterator entry) {
  ::epoll_ctl(ended_.get(), EPOLL_CTL_DEL, entry->second.pidfd.get(), nullptr);
  entries_.erase(entry);
}

void EnabledEntries::remove_ended() {
  std::array<epoll_event, 64> events{};
  for (int count = 0; (count = ::epoll_wait(ended_.get(), events.data(), events.size(), 0)) > 0;) {
    for (int i = 0; i < count; ++i) {
      const auto entry = entries_.find(static_cast<std::int32_t>(events.at(static_cast<std::size_t>(i)).data.u64));
      if (entry == entries_.end()) continue;
      forget_enabled(entry->first, entry->second.start_ticks);
      forget(entry);
    }
  }
}

}  // namespace rtev::enable
