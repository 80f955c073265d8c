// SPDX-License-Identifier: MIT
#include "discover/left_behind.hpp"

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
constexpr std::size_t most_candidates = 32;

/// Takes hold of what a path leads to without opening it: a device or a pipe would notice.
UniqueFd hold(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;  // the kernel told a path without any
  return UniqueFd{static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how))};
}

/// Device and inode of an open file, both as the kernel side tells them. Not from stat(2): btrfs shows a device of its
/// own for each subvolume, overlayfs that of a layer.
bool is_file(const Procfs& procfs, int fd, const FilePlace& place, const std::vector<Mount>& mounts) {
  const auto open = procfs.open_file(fd);
  if (!open || open->inode != place.inode) return false;
  const auto mount = std::ranges::find(mounts, open->mount, &Mount::id);
  return mount != mounts.end() && mount->device == place.device;
}

}  // namespace

std::vector<std::string> candidate_paths(const FilePlace& place, const std::vector<Mount>& mounts) {
  std::vector<std::string> paths;
  for (const Mount& mount : mounts) {
    if (mount.device != place.device) continue;
    // A traced user may serve it, and let us wait for ever.
    if (mount.type.starts_with("fuse")) continue;
    std::string_view rest = place.path;
    if (mount.root != "/") {
      if (!rest.starts_with(mount.root)) continue;
      rest.remove_prefix(mount.root.size());
    }
    if (!rest.starts_with('/')) continue;
    paths.push_back((mount.point == "/" ? "" : mount.point) + std::string(rest));
    if (paths.size() == most_candidates) break;
  }
  return paths;
}

Result<FoundFile> open_left_behind(const Procfs& procfs, const FilePlace& place) {
  const std::vector<Mount> mounts = procfs.mounts();
  for (std::string& path : candidate_paths(place, mounts)) {
    const UniqueFd held = hold(path);
    if (!held || !is_file(procfs, held.get(), place, mounts)) continue;
    auto fd = procfs.reopen(held.get());
    if (!fd) return std::unexpected(std::move(fd.error()));
    return FoundFile{.fd = std::move(*fd), .path = std::move(path)};
  }
  return errno_error(ENOENT, "cannot find file again", place.path);
}

}  // namespace rtev
