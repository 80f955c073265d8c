// SPDX-License-Identifier: MIT
#include "session/command/private_dir.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

namespace rtev {
namespace {

/// Bounds on the work of a removal: some hundred thousand files in each pass.
constexpr int max_passes = 8, max_reads = 4096;

constexpr int max_attempts = 16;

/// Without the bits that a directory may inherit.
constexpr mode_t access_modes = 0777, private_mode = 0700;

/// Bounds on the work of a sweep: names that are read, and directories that are removed.
constexpr int max_names = 1 << 16;
constexpr std::size_t max_removed = 64;

/// Younger directories stay: their tracer may be about to lock them, or is of a version that takes no lock.
constexpr time_t min_age_s = 600;

bool is_young(const struct stat& directory) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return directory.st_mtim.tv_sec > now.tv_sec - min_age_s;
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
  UniqueFd fd{::fcntl(base_fd, F_DUPFD_CLOEXEC, 0)};
  if (!fd) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(fd.get()), ::closedir);
  if (!entries) return names;
  fd.release();  // the stream closes it
  for (int seen = 0; seen < max_names && names.size() < max_removed; ++seen) {
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    if (is_ours_by_name(entry->d_name)) names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace

Result<PrivateDir> PrivateDir::create(const std::optional<SudoUser>& owner, const Look& look) {
  const char* variable = ::getenv("TMPDIR");
  const std::string base = variable != nullptr && *variable != '\0' ? variable : "/tmp";
  // The caller of sudo may choose $TMPDIR, and replace what is in it at any time.
  const auto rights = FileRights::of(owner);
  if (!rights) return std::unexpected(rights.error());
  sweep_stale_dirs(base, owner ? std::optional(owner->uid) : std::nullopt, look);
  for (int attempt = 1;; ++attempt) {
    std::string path = base + '/' + private_dir_prefix + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return errno_error(errno, "cannot create a directory for rings", path, "set TMPDIR to a writable directory");
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status{};
    // Before it was locked, another tracer that started at the same time may have taken it for stale.
    const bool is_there = fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(fd.get(), &status) == 0 &&
                          status.st_nlink > 0 && status.st_uid == (owner ? owner->uid : ::geteuid()) &&
                          (status.st_mode & access_modes) == private_mode;
    if (is_there) return PrivateDir(std::move(path), std::move(fd));
    const int code = fd ? EBUSY : errno;
    ::rmdir(path.c_str());
    if (attempt == max_attempts)
      return errno_error(code, "cannot use the new directory for rings", path,
                         "set TMPDIR to a directory that only you may write to");
  }
}

PrivateDir::PrivateDir(PrivateDir&& other) noexcept
    : path_(std::exchange(other.path_, {})), fd_(std::move(other.fd_)), stays_(other.stays_) {}

PrivateDir::~PrivateDir() {
  if (!path_.empty() && !stays_) remove();
}

std::optional<std::vector<NamedProcess>> PrivateDir::users(const Look& look) const {
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) return std::nullopt;
  StartedWith started{.variable = std::string(ring_directory_variable) + '=' + path_, .user = status.st_uid};
  auto view = look({.started_with = std::move(started)});
  if (!view) return std::nullopt;
  return std::move(view->started);
}

void PrivateDir::remove() const noexcept {
  // Several passes, because some file systems skip entries while others are removed; a bounded number, because the
  // owner may keep adding files.
  bool removed_some = true;
  for (int pass = 0; removed_some && pass < max_passes; ++pass) {
    removed_some = false;
    ::lseek(fd_.get(), 0, SEEK_SET);
    alignas(dirent64) std::array<char, 4096> entries;
    for (int reads = 0; reads < max_reads; ++reads) {
      const ssize_t size = ::getdents64(fd_.get(), entries.data(), entries.size());
      if (size <= 0) break;
      for (ssize_t at = 0; at < size;) {
        const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
        if (::unlinkat(fd_.get(), entry->d_name, 0) == 0) removed_some = true;
        at += entry->d_reclen;
      }
    }
  }
  ::rmdir(path_.c_str());
}

void sweep_stale_dirs(const std::string& base, std::optional<uid_t> owner, const Look& look) {
  const UniqueFd base_fd(::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status{};
  if (!base_fd || ::fstat(base_fd.get(), &status) != 0 || !keeps_entries(status)) return;
  for (const std::string& name : candidates(base_fd.get())) {
    UniqueFd fd(::openat(base_fd.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd || ::fstat(fd.get(), &status) != 0 || (status.st_mode & access_modes) != private_mode) continue;
    if ((status.st_uid != ::geteuid() && status.st_uid != owner) || is_young(status)) continue;
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
    PrivateDir directory = PrivateDir::take_over(fmt::format("{}/{}", base, name), std::move(fd));
    // The command of a killed tracer continues, and may start more programs that write rings there.
    const auto users = directory.users(look);
    if (!users || !users->empty()) directory.leave();
  }
}

}  // namespace rtev
