// SPDX-License-Identifier: MIT
#include "enable/ring_removal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ranges>
#include <span>
#include <vector>

#include "enable/as_program.hpp"
#include "enable/process_status.hpp"
#include "inspect/mount_table.hpp"

namespace rtev::enable {
namespace {

/// Mappings of rings that the program itself made. A forked child maps its parent's ring, too, and readers map others'.
std::vector<Mapping> own_rings(const Procfs& procfs, std::int32_t pid) {
  std::vector<Mapping> found;
  const std::int32_t own_number = procfs.ns_pid(pid);
  procfs.visit_mappings(pid, [&](Mapping mapping) {
    if (is_ring_mapping(mapping) && ring_number(mapping.path) == own_number) found.push_back(std::move(mapping));
    return true;
  });
  return found;
}

bool has_ring(const Procfs& procfs, const UniqueFd& directory, const Mapping& ring, const std::string& name,
              std::int32_t pid) {
  MountTables mounts;
  if (!directory || !mounts.check(directory.get(), pid, true)) return false;
  const UniqueFd file(::openat(directory.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const auto found = file ? procfs.open_file(file.get()) : std::nullopt;
  return found && found->inode == ring.inode;
}

/// Runs in a child process, which this changes.
bool remove_as_program(const Procfs& procfs, const Mapping& ring, std::int32_t pid, const ProcessStatus& status) {
  const std::filesystem::path path(ring.path);
  const std::string name = path.filename();
  UniqueFd directory = open_directory(pid, path.parent_path());
  // The kernel names it as this process sees it if both are in one mount namespace: also below a root of the program.
  if (!has_ring(procfs, directory, ring, name, pid))
    directory.reset(::open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!has_ring(procfs, directory, ring, name, pid)) return false;
  if (!become(status, pid)) return false;
  return ::unlinkat(directory.get(), name.c_str(), 0) == 0;
}

/// Not if the program wants its rings to stay.
bool remove_file(const Procfs& procfs, const Mapping& ring, std::int32_t pid) {
  if (started_with(pid, "OCAML_RUNTIME_EVENTS_PRESERVE")) return false;
  const auto status = read_status(pid);
  bool is_removed = false;
  const auto remove = [&] { is_removed = remove_as_program(procfs, ring, pid, *status); };
  return status && run_in_child(std::as_writable_bytes(std::span(&is_removed, 1)), remove) && is_removed;
}

}  // namespace

std::optional<Mapping> present_ring(const Procfs& procfs, std::int32_t pid) {
  const auto rings = own_rings(procfs, pid);
  const auto present = std::ranges::find(rings, false, &Mapping::deleted);
  return present == rings.end() ? std::nullopt : std::optional(*present);
}

bool remove_ring_file(const Procfs& procfs, const Target& target) {
  const auto ring = present_ring(procfs, target.pid);
  return ring && remove_file(procfs, *ring, target.pid);
}

void remove_left_ring(const Procfs& procfs, const Target& target, const EnabledNote& before) {
  if (before.ring_path.empty() || present_ring(procfs, target.pid)) return;
  // If it is gone, or another one has its name, nothing happens.
  [[maybe_unused]] const bool is_removed =
      remove_file(procfs, {.inode = before.ring_inode, .path = before.ring_path}, target.pid);
}

void free_removed_rings(const Procfs& procfs, const Target& target) {
  MountTables mounts;
  for (const Mapping& ring : own_rings(procfs, target.pid) | std::views::filter(&Mapping::deleted)) {
    const std::string path = fmt::format("/proc/{}/map_files/{:x}-{:x}", target.pid, ring.begin, ring.end);
    const UniqueFd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status{};
    if (!place || !mounts.check(place.get(), target.pid, true) || ::fstat(place.get(), &status) != 0) continue;
    // The program may write to it, since it maps it so. This process may not, but its owner may.
    const auto own_user = static_cast<uid_t>(::setfsuid(status.st_uid));
    const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ::setfsuid(own_user);
    if (file) ::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, status.st_size);
  }
}

}  // namespace rtev::enable
