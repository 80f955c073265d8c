// SPDX-License-Identifier: MIT
#include "enable/ring_removal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/proc_files.hpp"
#include "base/subordinate_users.hpp"
#include "enable/as_program.hpp"
#include "enable/ring_place.hpp"
#include "inspect/mount_table.hpp"

namespace rtev::enable {
namespace {

/// Removed rings that are looked at, and freed, at a time. Each time that events are switched on adds one.
constexpr std::size_t max_removed = 64;

/// No path of Linux is longer. Escapes make one longer that holds newlines: no ring of ours.
constexpr std::size_t max_ring_path_bytes = 4096;

/// What the program itself made. A forked child maps its parent's ring, too, and readers map others'.
struct OwnRings {
  std::optional<Mapping> present{};  ///< the first one whose file has a name
  std::vector<Mapping> removed{};    ///< without their paths
};

/// A process can have 65,530 mappings, with paths of kilobytes: no more is kept than is needed.
OwnRings own_rings(const Procfs& procfs, const HeldProcess& process) {
  OwnRings found;
  const std::int32_t own_number = procfs.ns_pid(process.pid());
  procfs.visit_mappings(process.pid(), [&](Mapping mapping) {
    if (mapping.path.size() > max_ring_path_bytes || !is_ring_mapping(mapping) ||
        ring_number(mapping.path) != own_number)
      return true;
    if (!mapping.deleted) {
      if (!found.present) found.present = std::move(mapping);
    } else if (found.removed.size() < max_removed) {
      mapping.path = std::string();
      found.removed.push_back(std::move(mapping));
    }
    return true;
  });
  return found;
}

bool keeps_rings(const HeldProcess& process) {
  return process.started_with("OCAML_RUNTIME_EVENTS_PRESERVE").has_value();
}

/// Whether this is the file of a ring that was removed, and of nobody but the program. The file is held.
bool is_removed_ring(const Procfs& procfs, const UniqueFd& file, const Mapping& ring, const HeldProcess& process) {
  MountTables mounts;
  struct stat status{};
  const auto opened = file ? procfs.open_file(file.get()) : std::nullopt;
  return opened && opened->inode == ring.inode && mounts.check(file.get(), process.pid(), true) &&
         ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0 &&
         status.st_uid == process.credentials().user;
}

/// Of a file that is held (O_PATH): the kernel checks whether this process's user may write to it.
bool free_blocks(const UniqueFd& held) {
  struct stat status{};
  const UniqueFd file = open_proc(fmt::format("/proc/self/fd/{}", held.get()), O_RDWR);
  return file && ::fstat(file.get(), &status) == 0 && status.st_nlink == 0 &&
         ::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, status.st_size) == 0;
}

}  // namespace

std::optional<Mapping> present_ring(const Procfs& procfs, const HeldProcess& process) {
  return own_rings(procfs, process).present;
}

bool remove_present_ring(const Procfs& procfs, const Target& target) {
  const auto ring = present_ring(procfs, target.process);
  return ring && !keeps_rings(target.process) &&
         remove_ring_file(procfs, target.process, ring->path, {.inode = ring->inode});
}

void remove_left_ring(const Procfs& procfs, const Target& target, const EnabledNote& before) {
  // Another user's program may have left it to find something else in its place.
  if (before.user != target.process.credentials().user) return;
  if (before.ring_path.empty() || keeps_rings(target.process) || present_ring(procfs, target.process)) return;
  // If it is gone, or another one has its name, nothing happens.
  remove_ring_file(procfs, target.process, before.ring_path, {.inode = before.ring_inode});
}

void free_removed_rings(const Procfs& procfs, const Target& target) {
  const HeldProcess& process = target.process;
  const OwnRings rings = own_rings(procfs, process);
  // Without a name it may be the one that is written to: somebody has removed its file.
  if (!rings.present || rings.removed.empty()) return;
  run_in_child(charged_user(process.credentials().user), {process.directory().get()}, [&] {
    std::vector<UniqueFd> held;
    for (const Mapping& ring : rings.removed) {
      UniqueFd file = process.open(fmt::format("map_files/{:x}-{:x}", ring.begin, ring.end).c_str(), O_PATH);
      if (is_removed_ring(procfs, file, ring, process)) held.push_back(std::move(file));
    }
    bool are_freed = become(process.credentials());
    for (const UniqueFd& file : held) are_freed = are_freed && free_blocks(file);
    helper::Message answer;
    helper::Writer{answer}(are_freed);
    return answer;
  });
}

}  // namespace rtev::enable
