// SPDX-License-Identifier: MIT
// Finds files of processes that are gone, by what the kernel side told of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/file_place.hpp"
#include "inspect/procfs.hpp"

namespace rtev {

/// A file that was found again.
struct FoundFile {
  UniqueFd fd;
  std::string path;
};

/// A place where a file may lie.
struct Candidate {
  std::string point;       ///< of a mount of its file system
  std::int64_t mount = 0;  ///< the mount's id
  std::string rest;        ///< the path from there

  std::string path() const { return (point == "/" ? "" : point) + "/" + rest; }
};

/// Where a file may lie in this mount namespace: under each mount of its file system that holds its path.
std::vector<Candidate> find_candidates(const FilePlace& place, const std::vector<Mount>& mounts);

/// Opens the very file, for reading. Whoever owns the directories on the way may change them meanwhile: no symbolic
/// link is followed, nothing but a regular file is opened, and nothing but the file that was told of is handed out.
Result<FoundFile> open_by_place(const Procfs& procfs, const FilePlace& place);

}  // namespace rtev
