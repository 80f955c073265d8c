// SPDX-License-Identifier: MIT
#include "processes/rings/ring_file_lookup.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace rtev {
namespace {

/// A file system can be mounted in many places; that a file can be reached only through a late one is rare.
constexpr std::size_t max_candidates = 32;

UniqueFd hold(int directory, const char* path, std::uint64_t resolve) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = resolve | RESOLVE_NO_SYMLINKS;  // paths that the kernel reports contain none
  return UniqueFd{static_cast<int>(::syscall(SYS_openat2, directory, path, &how, sizeof how))};
}

/// Gets a handle (O_PATH) of a file of a mount without opening it, since opening a device or a pipe has effects. Enters
/// no other mount on the way: a traced user may serve it, and block us for ever.
UniqueFd hold(const Procfs& procfs, const Candidate& candidate) {
  // If something is mounted on top of it, the mount id differs.
  const UniqueFd point = hold(AT_FDCWD, candidate.point.c_str(), 0);
  if (!point) return UniqueFd{};
  const auto open = procfs.open_file(point.get());
  if (!open || open->mount != candidate.mount) return UniqueFd{};
  return hold(point.get(), candidate.rest.c_str(), RESOLVE_BENEATH | RESOLVE_NO_XDEV);
}

/// Compares device and inode as BPF reports them. Not those of stat(2): btrfs shows a device of its own for each
/// subvolume, overlayfs that of a layer.
bool is_file(const Procfs& procfs, int fd, const FilePlace& place, const std::vector<Mount>& mounts) {
  const auto open = procfs.open_file(fd);
  if (!open || open->inode != place.inode) return false;
  const auto mount = std::ranges::find(mounts, open->mount, &Mount::id);
  return mount != mounts.end() && mount->device == place.device;
}

}  // namespace

std::vector<Candidate> find_candidates(const FilePlace& place, const std::vector<Mount>& mounts) {
  std::vector<Candidate> candidates;
  for (const Mount& mount : mounts) {
    if (mount.device != place.device) continue;
    // A traced user may serve it, and block us for ever.
    if (mount.type.starts_with("fuse")) continue;
    std::string_view rest = place.path;
    if (mount.root != "/") {
      if (!rest.starts_with(mount.root)) continue;
      rest.remove_prefix(mount.root.size());
    }
    if (!rest.starts_with('/')) continue;
    candidates.push_back({.point = mount.point, .mount = mount.id, .rest = std::string(rest.substr(1))});
    if (candidates.size() == max_candidates) break;
  }
  return candidates;
}

Result<FoundFile> open_by_place(const Procfs& procfs, const FilePlace& place) {
  const std::vector<Mount> mounts = procfs.mounts();
  for (const Candidate& candidate : find_candidates(place, mounts)) {
    const UniqueFd held = hold(procfs, candidate);
    if (!held || !is_file(procfs, held.get(), place, mounts)) continue;
    auto fd = procfs.reopen(held.get());
    if (!fd) return std::unexpected(std::move(fd.error()));
    return FoundFile{.fd = std::move(*fd), .path = candidate.path()};
  }
  return errno_error(ENOENT, "cannot find file again", place.path);
}

}  // namespace rtev
