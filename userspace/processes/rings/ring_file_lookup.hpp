// SPDX-License-Identifier: MIT
// Finds files of processes that are gone by their place: device, inode and path, as BPF reported them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/file_place.hpp"
#include "inspect/procfs.hpp"

namespace rtev {

/// A file that was found.
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

/// Opens exactly this file for reading. Its users may change the directories on the way meanwhile: no symbolic link is
/// followed, nothing but a regular file is opened, and no other file is returned.
Result<FoundFile> open_by_place(const Procfs& procfs, const FilePlace& place);

}  // namespace rtev
