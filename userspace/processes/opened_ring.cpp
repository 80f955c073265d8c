// SPDX-License-Identifier: MIT
#include "processes/opened_ring.hpp"

#include <set>
#include <utility>

namespace rtev {
namespace {

/// A program has one ring, a forked child its parent's for a moment. Who maps more is no OCaml program, and shall not
/// use up our descriptors.
constexpr std::size_t most_rings = 4;

/// Files shared with others that an OCaml program may have mapped besides its ring.
constexpr std::size_t most_shared_files = 64;

bool is_shared_file(const Mapping& mapping) {
  return mapping.permissions.size() == 4 && mapping.permissions[1] == 'w' && mapping.permissions[3] == 's' &&
         mapping.offset == 0 && mapping.path.starts_with('/');
}

std::vector<PinnedRing> pin(const Procfs& procfs, std::int32_t pid, const std::vector<Mapping>& mappings,
                            bool (*is_wanted)(const Mapping&), std::size_t most) {
  std::vector<PinnedRing> rings;
  std::set<std::pair<std::uint64_t, std::uint64_t>> files;
  for (const Mapping& mapping : mappings) {
    if (!is_wanted(mapping) || !files.emplace(mapping.device, mapping.inode).second) continue;
    if (files.size() > most) break;
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

Image pin_image(const Procfs& procfs, std::int32_t pid) {
  Image image;
  if (auto file = procfs.open_exe(pid)) image.file = std::move(*file);
  image.exe = procfs.exe_path(pid);
  image.ns_pid = procfs.ns_pid(pid);
  return image;
}

std::vector<PinnedRing> pin_rings(const Procfs& procfs, std::int32_t pid) {
  return pin_rings(procfs, pid, procfs.mappings(pid));
}

std::vector<PinnedRing> pin_rings(const Procfs& procfs, std::int32_t pid, const std::vector<Mapping>& mappings) {
  return pin(procfs, pid, mappings, is_ring_mapping, most_rings);
}

std::vector<PinnedRing> pin_shared_files(const Procfs& procfs, std::int32_t pid) {
  return pin(procfs, pid, procfs.mappings(pid), is_shared_file, most_shared_files);
}

}  // namespace rtev
