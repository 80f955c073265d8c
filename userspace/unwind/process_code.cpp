// SPDX-License-Identifier: MIT
#include "unwind/process_code.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "inspect/binary_cache.hpp"
#include "unwind/object_tables_builder.hpp"

namespace rtev {
namespace {

/// A program with all its libraries and plugins has fewer. A message holds as many.
constexpr std::size_t max_mappings = 512;

/// Of each path: a message must have room for those of all mappings.
constexpr std::size_t max_path = 1024;

/// Of one answer: a message holds no more descriptors, and the answer must not take longer than the helper may. The
/// last file may take its own time beyond that.
constexpr std::size_t max_tables_at_once = 64;
constexpr std::uint64_t max_building_ns = 500'000'000;

/// Of CPU time for one file: six times what a library of 130 MB takes.
constexpr std::uint64_t max_file_ns = 500'000'000;

/// Memory that nobody can change any more; none if there is no room.
UniqueFd sealed(std::span<const std::byte> bytes) {
  UniqueFd memory(::memfd_create("unwind-tables", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return {};
  while (!bytes.empty()) {
    const ssize_t put = ::write(memory.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return {};
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) return {};
  return memory;
}

void add_tables(int file, MappedCode& code) {
  const auto tables = build_object_tables(file, {}, max_file_ns);
  if (tables)
    code.tables = sealed(*tables);
  else
    code.has_none = tables.error().code == 0;  // else it may be readable the next time
}

}  // namespace

std::vector<MappedCode> look_at_code(const Procfs& procfs, std::int32_t pid, const std::vector<MappedFile>& known,
                                     bool builds_tables) {
  std::vector<MappedCode> found;
  std::vector<Mapping> mappings;
  procfs.visit_mappings(pid, [&](Mapping mapping) {
    if (mapping.permissions.size() < 3 || mapping.permissions[2] != 'x') return true;
    found.push_back({.begin = mapping.begin,
                     .end = mapping.end,
                     .offset = mapping.offset,
                     .file = {.device = mapping.device, .inode = mapping.inode},
                     .path = mapping.path.substr(mapping.path.size() - std::min(mapping.path.size(), max_path))});
    mappings.push_back(std::move(mapping));
    return found.size() < max_mappings;
  });
  // After all mappings are read: the process may end meanwhile.
  const std::set<MappedFile> all_known(known.begin(), known.end());
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::int64_t> change_times;  // by device and inode
  const std::uint64_t end_ns = thread_cpu_ns() + max_building_ns;
  for (std::size_t i = 0, built = 0; i < found.size(); ++i) {
    MappedFile& file = found[i].file;
    if (file.inode == 0) continue;
    const auto [time, is_new] = change_times.try_emplace({file.device, file.inode});
    const bool has_time = thread_cpu_ns() < end_ns;
    const auto opened = is_new && has_time ? procfs.open_mapping(pid, mappings[i]) : std::unexpected(Error{});
    if (const auto identity = opened ? BinaryCache::identify(opened->get()) : std::unexpected(Error{}))
      time->second = identity->changed_ns;
    file.changed_ns = time->second;
    if (!builds_tables || !opened || all_known.contains(file) || built == max_tables_at_once) continue;
    add_tables(opened->get(), found[i]);
    ++built;
  }
  return found;
}

}  // namespace rtev
