// SPDX-License-Identifier: MIT
// Any bytes as the record by which BPF reports a new ring, and any text as the mounts in which its file is looked for:
// the number of mounts of a line each, the mounts, the record.
#include "fuzz/fuzzing.hpp"
#include "inspect/file_place.hpp"

namespace rtev::fuzz {
namespace {

void check_place(const FilePlace& place, const std::vector<Mount>& mounts) {
  check(place.path.empty() || place.path.starts_with('/'), "a path is absolute", place.path);
  check(!place.path.contains('\0'), "a path has no NUL");
  const auto candidates = find_candidates(place, mounts);
  check(candidates.size() <= 32, "work for a file is bounded");
  for (const Candidate& candidate : candidates) {
    check(("/" + candidate.rest).size() <= place.path.size(), "what follows the mount is part of the path");
    check(place.path.ends_with("/" + candidate.rest), "what follows the mount is the end of the path");
    check(std::ranges::any_of(mounts,
                              [&](const Mount& mount) {
                                return mount.id == candidate.mount && mount.device == place.device &&
                                       mount.point == candidate.point && !mount.type.starts_with("fuse");
                              }),
          "a candidate is in a mount of the file system");
  }
}

}  // namespace

void ring_record(Bytes bytes) {
  Input input(bytes);
  std::vector<Mount> mounts;
  for (auto lines = input.take<std::uint8_t>() % 64; lines > 0; --lines) {
    if (auto mount = parse_mount(input.take_until('\n'))) mounts.push_back(std::move(*mount));
  }
  const RingRecordFiles files = parse_ring_record(std::as_bytes(input.rest()));
  std::size_t path_bytes = 0;
  for (const auto& place : {files.ring, files.program}) {
    if (!place) continue;
    check(files.clock_offset_ns.has_value(), "a record with a file is whole");
    path_bytes += place->path.size();
    check_place(*place, mounts);
  }
  check(path_bytes <= input.rest().size(), "no path is longer than the record");
}

}  // namespace rtev::fuzz
