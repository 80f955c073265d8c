// SPDX-License-Identifier: MIT
#include "inspect/file_place.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "bpf/records.h"

namespace rtev {
namespace {

/// "7.events\0tmp\0" becomes "/tmp/7.events".
std::string join_names(std::string_view names) {
  std::string path;
  while (!names.empty()) {
    names.remove_suffix(1);  // the NUL
    const auto before = names.rfind('\0');
    const auto begin = before == std::string_view::npos ? 0 : before + 1;
    path.append("/").append(names.substr(begin));
    names = names.substr(0, begin);
  }
  return path;
}

std::optional<FilePlace> place_of(const rtev_file& file, std::string_view names) {
  if (names.empty() || names.back() != '\0') return std::nullopt;
  constexpr unsigned minor_bits = 20;
  return FilePlace{.device = makedev(file.device >> minor_bits, file.device & ((1u << minor_bits) - 1)),
                   .inode = file.inode,
                   .path = join_names(names)};
}

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

RingRecordFiles parse_ring_record(std::span<const std::byte> tail) {
  constexpr std::size_t tail_begin = sizeof(rtev_lifecycle), fixed = offsetof(rtev_ring_record, paths) - tail_begin;
  if (tail.size() < fixed) return {};
  const auto copy = [&]<typename Field>(Field& field, std::size_t offset) {
    std::memcpy(&field, tail.data() + offset - tail_begin, sizeof field);
  };
  __s64 clock_offset = 0;
  __u64 address = 0;
  rtev_file ring, program;
  copy(clock_offset, offsetof(rtev_ring_record, clock_offset));
  copy(address, offsetof(rtev_ring_record, address));
  copy(ring, offsetof(rtev_ring_record, ring));
  copy(program, offsetof(rtev_ring_record, program));
  const std::string_view paths(reinterpret_cast<const char*>(tail.data()) + fixed, tail.size() - fixed);
  const auto ring_end = std::min<std::size_t>(ring.path_bytes, paths.size());
  return {.clock_offset_ns = clock_offset,
          .address = address,
          .ring = place_of(ring, paths.substr(0, ring_end)),
          .program = place_of(program, paths.substr(ring_end, program.path_bytes))};
}

std::vector<Candidate> find_candidates(const FilePlace& place, const std::vector<Mount>& mounts) {
  std::vector<Candidate> candidates;
  for (const Mount& mount : mounts) {
    if (mount.device != place.device) continue;
    // Only root has mounted something here, but what it has mounted need not answer.
    if (!is_local_file_system(mount.type) && mount.type != "overlay") continue;
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
