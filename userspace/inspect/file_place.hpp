// SPDX-License-Identifier: MIT
// The place of a file, as BPF reports it: enough to find it again when the process that had it open is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

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
  std::optional<FilePlace> ring;
  std::optional<FilePlace> program;  ///< that the process ran
};

/// Takes apart what a struct rtev_ring_record holds beyond its rtev_lifecycle.
RingRecordFiles parse_ring_record(std::span<const std::byte> tail);

}  // namespace rtev
