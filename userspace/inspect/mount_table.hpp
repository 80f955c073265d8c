// SPDX-License-Identifier: MIT
// Which files can be read without waiting for somebody: their file system decides. A file system that a program serves
// (FUSE) or that lies on the network may answer late, or never.
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/cpu_share.hpp"
#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// True for file systems whose files the kernel itself can always read: memory and local disks. `type` as in mountinfo.
bool is_local_file_system(std::string_view type);

/// Error::code of files that are not opened because their file system may not answer.
inline constexpr int unsafe_file_system = EREMOTE;

/// The mounts of this process and of those it looks at, read when they change. A user can make a table long, and change
/// it all the time: what lies beyond the limits is not known. One thread.
class MountTables {
 public:
  struct Limits {
    std::size_t bytes = 4u << 20;             ///< of a table
    std::uint64_t read_cpu_ns = 20'000'000;   ///< each time a table is read
    CpuShare cpu_share{10, read_cpu_ns / 2};  ///< of reading one table again and again
  };

  explicit MountTables(std::filesystem::path proc_root = "/proc") : MountTables(std::move(proc_root), Limits()) {}
  MountTables(std::filesystem::path proc_root, const Limits& limits) : root_(std::move(proc_root)), limits_(limits) {}

  /// Fails (unsafe_file_system) if reading the file could wait for ever. `fd` may be opened with O_PATH, and `pid` is a
  /// process that uses the file. If the mount is in neither's table, or the table has changed and may not be read yet,
  /// the file system itself is asked, which may hang; `careful`: such files are not safe.
  Result<void> check(int fd, std::int32_t pid, bool careful);

 private:
  /// Of one mount namespace.
  struct Table {
    std::string name;      ///< of the namespace
    UniqueFd changes;      ///< its mountinfo: poll(2) reports that it changed
    CpuShare cpu_share;    ///< for reading it
    bool by_root = false;  ///< only root of this process's user namespace can mount something there
    std::map<std::int64_t, std::string> types{};  ///< by mount id
    std::set<std::string> roots{};  ///< a process sees the mounts below its root: those from which it was read
  };
  Table* table_of(const std::string& process);
  bool read(Table& table, const std::string& process) const;
  std::optional<std::map<std::int64_t, std::string>> read_types(const std::string& process) const;

  std::filesystem::path root_;
  Limits limits_;
  std::list<Table> tables_;  ///< the one used last comes first
};

}  // namespace rtev
