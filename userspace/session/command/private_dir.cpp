// SPDX-License-Identifier: MIT
#include "session/command/private_dir.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "session/command/stale_dirs.hpp"

namespace rtev {
namespace {

/// Bounds on the work of a removal: some hundred thousand files in each pass.
constexpr int most_passes = 8, most_reads = 4096;

constexpr int most_attempts = 16;

}  // namespace

Result<PrivateDir> PrivateDir::create(const std::optional<SudoUser>& owner) {
  const char* variable = ::getenv("TMPDIR");
  const std::string base = variable != nullptr && *variable != '\0' ? variable : "/tmp";
  sweep_stale_dirs(base, owner ? std::optional(owner->uid) : std::nullopt);
  for (int attempt = 1;; ++attempt) {
    std::string path = base + '/' + private_dir_prefix + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return errno_error(errno, "cannot create a directory for rings", path, "set TMPDIR to a writable directory");
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status{};
    // Before it was locked it looked left behind to another tracer that started just then.
    const bool is_there =
        fd && ::flock(fd.get(), LOCK_EX) == 0 && ::fstat(fd.get(), &status) == 0 && status.st_nlink > 0;
    if (!is_there && attempt < most_attempts) continue;
    if (!is_there || (owner && ::fchown(fd.get(), owner->uid, owner->gid) != 0)) {
      const int code = errno;
      ::rmdir(path.c_str());
      return errno_error(code, "cannot give the directory for rings to the command's user", path);
    }
    return PrivateDir(std::move(path), std::move(fd));
  }
}

PrivateDir::PrivateDir(PrivateDir&& other) noexcept
    : path_(std::exchange(other.path_, {})), fd_(std::move(other.fd_)), stays_(other.stays_) {}

PrivateDir::~PrivateDir() {
  if (!path_.empty() && !stays_) remove();
}

std::vector<std::int32_t> PrivateDir::users(const Procfs& procfs) const {
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) return {};
  return procfs.started_with(std::string(ring_directory_variable) + '=' + path_, status.st_uid);
}

void PrivateDir::remove() const noexcept {
  // Passes, since some file systems skip entries when others go; not without end, since the owner may go on adding.
  bool removed_some = true;
  for (int pass = 0; removed_some && pass < most_passes; ++pass) {
    removed_some = false;
    ::lseek(fd_.get(), 0, SEEK_SET);
    alignas(dirent64) std::array<char, 4096> entries;
    for (int reads = 0; reads < most_reads; ++reads) {
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

}  // namespace rtev
