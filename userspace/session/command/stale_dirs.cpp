// SPDX-License-Identifier: MIT
#include "session/command/stale_dirs.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "session/command/private_dir.hpp"

namespace rtev {
namespace {

/// Bounds on the work: names that are looked at, and directories that are removed at a start.
constexpr int most_names = 1 << 16;
constexpr std::size_t most_removed = 64;

/// Younger ones are left alone: they may be in the making, or of a version of the tracer that takes no lock.
constexpr time_t least_age_s = 600;

bool is_young(const struct stat& directory) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return directory.st_mtim.tv_sec > now.tv_sec - least_age_s;
}

bool is_ours_by_name(std::string_view name) {
  constexpr std::size_t random_characters = 6;
  const std::string_view prefix = private_dir_prefix;
  return name.starts_with(prefix) && name.size() == prefix.size() + random_characters;
}

/// True if only its owner can rename or replace the entries of a directory that belong to others.
bool keeps_entries(const struct stat& base) {
  const bool shared = (base.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  return (base.st_uid == 0 || base.st_uid == ::geteuid()) && (!shared || (base.st_mode & S_ISVTX) != 0);
}

std::vector<std::string> candidates(int base_fd) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(::dup(base_fd)), ::closedir);
  if (!entries) return names;
  for (int seen = 0; seen < most_names && names.size() < most_removed; ++seen) {
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    if (is_ours_by_name(entry->d_name)) names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace

void sweep_stale_dirs(const std::string& base, std::optional<uid_t> owner, const Procfs& procfs) {
  const UniqueFd base_fd(::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status{};
  if (!base_fd || ::fstat(base_fd.get(), &status) != 0 || !keeps_entries(status)) return;
  for (const std::string& name : candidates(base_fd.get())) {
    UniqueFd fd(::openat(base_fd.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    constexpr mode_t all_modes = 07777, private_mode = 0700;
    if (!fd || ::fstat(fd.get(), &status) != 0 || (status.st_mode & all_modes) != private_mode) continue;
    if ((status.st_uid != ::geteuid() && status.st_uid != owner) || is_young(status)) continue;
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
    PrivateDir directory = PrivateDir::take_over(base + '/' + name, std::move(fd));
    // The command of a tracer that was killed goes on, and may start more programs that write rings there.
    if (!directory.users(procfs).empty()) directory.leave();
  }
}

}  // namespace rtev
