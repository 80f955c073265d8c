// SPDX-License-Identifier: MIT
#include "inspect/process_files.hpp"

#include <sys/stat.h>

#include <set>
#include <utility>

namespace rtev {
namespace {

/// A program has one ring, a forked child its parent's for a moment. A process that maps more is not an OCaml program,
/// and must not use up our descriptors.
constexpr std::size_t max_mapped_rings = 4;

/// Files shared with others that an OCaml program may have mapped besides its ring.
constexpr std::size_t max_shared_files = 64;

bool is_shared_file(const Mapping& mapping) {
  return mapping.permissions.size() == 4 && mapping.permissions[1] == 'w' && mapping.permissions[3] == 's' &&
         mapping.offset == 0 && mapping.path.starts_with('/');
}

std::vector<OpenedRing> open_files(const Procfs& procfs, std::int32_t pid, const std::vector<Mapping>& mappings,
                                   bool (*is_wanted)(const Mapping&), std::size_t max_files) {
  std::vector<OpenedRing> rings;
  std::set<std::pair<std::uint64_t, std::uint64_t>> files;
  for (const Mapping& mapping : mappings) {
    if (!is_wanted(mapping) || !files.emplace(mapping.device, mapping.inode).second) continue;
    if (files.size() > max_files) break;
    auto fd = procfs.open_mapping(pid, mapping);
    if (!fd) continue;
    rings.push_back({.fd = std::move(*fd),
                     .path = mapping.path,
                     .clock_offset_ns = procfs.clock_offset_ns(pid),
                     .begin = mapping.begin,
                     .length = mapping.end - mapping.begin});
  }
  return rings;
}

}  // namespace

std::optional<RingFileId> identify_ring(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return std::nullopt;
  return RingFileId{status.st_dev, status.st_ino};
}

Image open_image(const Procfs& procfs, std::int32_t pid) {
  Image image;
  if (auto file = procfs.open_exe(pid)) image.file = std::move(*file);
  image.exe = procfs.exe_path(pid);
  image.ns_pid = procfs.ns_pid(pid);
  return image;
}

std::vector<OpenedRing> open_mapped_rings(const Procfs& procfs, std::int32_t pid) {
  return open_mapped_rings(procfs, pid, procfs.mappings(pid));
}

std::vector<OpenedRing> open_mapped_rings(const Procfs& procfs, std::int32_t pid,
                                          const std::vector<Mapping>& mappings) {
  return open_files(procfs, pid, mappings, is_ring_mapping, max_mapped_rings);
}

std::vector<OpenedRing> open_shared_files(const Procfs& procfs, std::int32_t pid) {
  return open_files(procfs, pid, procfs.mappings(pid), is_shared_file, max_shared_files);
}

}  // namespace rtev
