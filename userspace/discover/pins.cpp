// SPDX-License-Identifier: MIT
#include "discover/pins.hpp"

#include <set>
#include <utility>

namespace rtev {
namespace {

/// A program has one ring, a forked child its parent's for a moment. Who maps more is no OCaml program, and shall not
/// use up our descriptors.
constexpr std::size_t most_rings = 4;

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
  std::vector<PinnedRing> rings;
  std::set<std::pair<std::uint64_t, std::uint64_t>> files;
  for (const Mapping& mapping : mappings) {
    if (!is_ring_mapping(mapping) || !files.emplace(mapping.device, mapping.inode).second) continue;
    if (files.size() > most_rings) break;
    auto fd = procfs.open_mapping(pid, mapping);
    if (!fd) continue;
    rings.push_back({.fd = std::move(*fd), .path = mapping.path, .clock_offset_ns = procfs.clock_offset_ns(pid)});
  }
  return rings;
}

}  // namespace rtev
