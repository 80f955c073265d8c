// SPDX-License-Identifier: MIT
// Files of a process, opened while it maps them: they stay readable when it is gone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "inspect/procfs.hpp"

namespace rtev {

/// The program that a process runs.
struct Image {
  std::uint64_t start_ticks = 0;
  std::int32_t ns_pid = 0;
  std::string comm;
  std::string exe;  ///< its path, as the kernel prints it; empty if the process was gone
  UniqueFd file;    ///< the program, open; none if the process was gone
};

/// A ring file that a process maps, or mapped. Readable whatever becomes of the process and of the file's name.
struct OpenedRing {
  UniqueFd fd;
  std::string path;  ///< as the mapping names it
  std::int64_t clock_offset_ns = 0;
  std::uint64_t begin = 0, length = 0;  ///< of the mapping, where that is known
};

using RingFileId = std::pair<std::uint64_t, std::uint64_t>;  ///< device and inode

/// The file behind an open descriptor, if fstat(2) succeeds.
std::optional<RingFileId> identify_ring(int fd);

/// What /proc shows now. `comm` and `start_ticks` are left to the caller, who has them from elsewhere.
Image open_image(const Procfs& procfs, std::int32_t pid);

/// The rings that the process maps, each once and not more than a few.
std::vector<OpenedRing> open_mapped_rings(const Procfs& procfs, std::int32_t pid);
std::vector<OpenedRing> open_mapped_rings(const Procfs& procfs, std::int32_t pid, const std::vector<Mapping>& mappings);
/// Files of any name that the process may write to and shares: a ring that was renamed is one of them.
std::vector<OpenedRing> open_shared_files(const Procfs& procfs, std::int32_t pid);

}  // namespace rtev
