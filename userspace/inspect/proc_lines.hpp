// SPDX-License-Identifier: MIT
// Parses the files of /proc. Their text is hostile where processes choose names in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/parse.hpp"

namespace rtev {

/// The parts of /proc/PID/stat that are needed.
struct ProcessStat {
  std::string comm;  ///< may hold any byte, also ") ("
  char state = '?';
  std::int32_t parent = 0;         ///< its pid
  bool kernel_thread = false;      ///< has neither a program nor memory of its own
  bool ending = false;             ///< its main thread has ended, or is about to; it may have others
  std::uint64_t threads = 0;       ///< those that are not yet gone, the main thread among them until all are
  std::uint64_t start_code = 0;    ///< lowest address of the program's code; 0 = unknown
  std::uint64_t start_ticks = 0;   ///< field 22, ticks of CLOCK_BOOTTIME: with the pid, the identity of a process
  std::uint64_t cpu_ticks = 0;     ///< fields 14 and 15: what all its threads used, in user mode and in the kernel
  std::uint64_t memory_pages = 0;  ///< field 24: in RAM
  /// Field 51, an address. 0 in the middle of an exec, and for those who may not know.
  std::uint64_t environment_end = 0;
};

/// Parses a stat file; nothing if it is not one, or cut off.
std::optional<ProcessStat> parse_stat(std::string_view text);

/// A line of /proc/PID/maps.
struct Mapping {
  std::uint64_t begin = 0, end = 0;     ///< addresses
  std::uint64_t offset = 0;             ///< in the file
  std::string permissions{};            ///< "r-xp"
  std::uint64_t device = 0, inode = 0;  ///< device as makedev() packs it; on overlayfs not what fstat says
  std::string path{};                   ///< as the kernel prints it, without " (deleted)"; hostile text
  bool deleted = false;
};

/// A line of /proc/self/mountinfo.
struct Mount {
  std::int64_t id = 0;
  std::uint64_t device = 0;  ///< the kernel's own of the file system, as makedev() packs it; not always what fstat says
  std::string root{};        ///< what of the file system is mounted
  std::string point{};       ///< and where
  std::string type{};
};

/// Parses one line of a maps file; nothing if it is not one.
std::optional<Mapping> parse_mapping(std::string_view line);
/// Parses one line of a mountinfo file; nothing if it is not one.
std::optional<Mount> parse_mount(std::string_view line);

/// True for a path that ends in <digits>.events.
bool is_ring_path(std::string_view path);
/// The number in <digits>.events: the pid of the process that made it, in its own namespace. Nothing for other paths.
std::optional<std::int32_t> ring_number(std::string_view path);
/// True for a runtime's mapping of its events file: shared, writable (readers map it, too), and named <digits>.events.
bool is_ring_mapping(const Mapping& mapping);

/// True for the mapping of a shared OCaml runtime: libasmrun*.so or libcamlrun*.so.
bool is_runtime_library(const Mapping& mapping);

/// True for a mapping of code that is not in a library: in a process that a loader began, the program's.
bool is_loaded_program(const Mapping& mapping);

}  // namespace rtev
