// SPDX-License-Identifier: MIT
// The place of a file, as BPF reports it: enough to find the file again when the process that had it open is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspect/procfs.hpp"

namespace rtev {

/// A file as the kernel itself numbers it, which on btrfs and overlayfs is not what stat(2) says.
struct FilePlace {
  std::uint64_t device = 0;  ///< of its file system, as makedev() packs it
  std::uint64_t inode = 0;
  std::string path{};  ///< from the root of its file system, not of a mount: "/tmp/7.events"; any bytes
};

/// What an RTEV_RING record says about the ring's process; files only where their path is known.
struct RingRecordFiles {
  std::optional<std::int64_t> clock_offset_ns;  ///< host clock minus that of the program's time namespace
  std::uint64_t address = 0;                    ///< of the ring's mapping, see rtev_ring_record
  std::optional<FilePlace> ring;
  std::optional<FilePlace> program;  ///< that the process ran
};

/// Parses what a struct rtev_ring_record holds beyond its rtev_lifecycle.
RingRecordFiles parse_ring_record(std::span<const std::byte> tail);

/// Where a file may lie in this mount namespace.
struct Candidate {
  std::string point;       ///< of a mount of its file system
  std::int64_t mount = 0;  ///< the mount's id
  std::string rest;        ///< the path from there

  std::string path() const { return (point == "/" ? "" : point) + "/" + rest; }
};
/// One under each mount of its file system that contains its path.
std::vector<Candidate> find_candidates(const FilePlace& place, const std::vector<Mount>& mounts);

struct FoundFile {
  UniqueFd fd;
  std::string path;
};
/// Opens exactly this file for reading. Its users may change the directories on the way meanwhile: no symbolic link is
/// followed, nothing but a regular file is opened, and no other file is returned.
Result<FoundFile> open_by_place(const Procfs& procfs, const FilePlace& place);

}  // namespace rtev
