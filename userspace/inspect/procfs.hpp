// SPDX-License-Identifier: MIT
// Reads /proc. The root of the tree can be another folder, so that tests can use a made-up one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/service_identity.hpp"
#include "base/unique_fd.hpp"
#include "inspect/mount_table.hpp"
#include "inspect/proc_lines.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// The parts of /proc/self/fdinfo/FD that are needed.
struct OpenFile {
  std::int64_t mount = 0;   ///< id of the mount it was opened through
  std::uint64_t inode = 0;  ///< the kernel's own number; not always what fstat says
};

/// If the main thread of a process has ended while others still run, everything is read through one of those. What is
/// read of a process can take long, and may never be answered: see helper/. Files are opened only if they are regular
/// and their file system answers (MountTables::check), else with an error of the code unsafe_file_system.
class Procfs {
 public:
  explicit Procfs(std::filesystem::path root = "/proc")
      : root_(std::move(root)), mount_tables_(std::make_shared<MountTables>(root_)) {}

  /// From now on, opens no files whose file system would have to be asked what it is.
  void set_careful(bool careful) { careful_ = careful; }

  /// All processes (thread group leaders), in no order.
  std::vector<std::int32_t> pids() const;
  /// The pid that the kernel gave out last, to a process or thread; 0 if unknown.
  std::int32_t last_pid() const;
  /// The pids that the kernel gave out after that one, in their order; they may have ended. None if `pid` is 0.
  std::vector<std::int32_t> pids_after(std::int32_t pid) const;
  /// Nothing if the process is gone (as with every reader below).
  std::optional<ProcessStat> stat(std::int32_t pid) const;
  /// Threads that live on although the main thread has ended: a few of them, none while it has not.
  std::vector<std::int32_t> living_threads(std::int32_t pid) const;
  /// Processes that this one's threads have forked and that live on; none if the kernel does not list them.
  std::vector<std::int32_t> children(std::int32_t pid) const;
  /// The pid in the innermost namespace the process lives in: last number of NSpid. The pid itself if unknown.
  std::int32_t ns_pid(std::int32_t pid) const;
  /// The charged_user() of the real user id; if that cannot be read, an id of no user.
  uid_t user(std::int32_t pid) const;
  /// True if this is one of the process's user ids (real, effective, saved, file system), or an id of its user
  /// namespace if that is not the host's.
  bool may_be_user(std::int32_t pid, uid_t user) const;
  /// The most memory the process has had in RAM so far, in bytes.
  std::optional<std::uint64_t> max_rss_bytes(std::int32_t pid) const;
  /// What the program was started with, its own name first, with blanks between; cut after max_small_bytes.
  std::string arguments(std::int32_t pid) const;
  /// The same with a 0 after each.
  std::string raw_arguments(std::int32_t pid) const;
  /// What it was started as part of. The process can make its reader wait.
  ServiceIdentity service(std::int32_t pid) const;
  /// Processes of this user that were started with this in their environment ("NAME=value"). Others are not looked
  /// into: a process can make its reader wait. One that does not get on with its exec counts as one of them.
  std::vector<std::int32_t> started_with(std::string_view variable, uid_t user) const;
  /// Target of /proc/PID/exe without " (deleted)"; empty if it cannot be read.
  std::string exe_path(std::int32_t pid) const;
  /// Opens the program a process runs, whatever namespace it lives in and also when it was unlinked.
  Result<UniqueFd> open_exe(std::int32_t pid) const;
  /// Calls `visit` for each mapping, in order of addresses, until it returns false. Gives up on a process with so many
  /// mappings that reading them takes too long.
  void visit_mappings(std::int32_t pid, const std::function<bool(Mapping)>& visit) const;
  /// The path of the file behind a mapping, without " (deleted)"; empty if there is no such mapping. Of the mapping
  /// only its addresses count.
  std::string mapping_path(std::int32_t pid, const Mapping& mapping) const;
  /// Opens the very file behind a mapping through map_files, whatever its name means today. Without the right to do
  /// that it is opened by its name, if the mapping has one that is still the file's.
  Result<UniqueFd> open_mapping(std::int32_t pid, const Mapping& mapping) const;
  /// A word of the process's memory; nothing if it cannot be read.
  std::optional<std::uint64_t> read_word(std::int32_t pid, std::uint64_t address) const;
  /// Host CLOCK_MONOTONIC minus the process's own, ns; 0 outside time namespaces.
  std::int64_t clock_offset_ns(std::int32_t pid) const;

  /// Mounts of this process's own namespace.
  std::vector<Mount> mounts() const;
  /// What the kernel says of a descriptor of ours, opened with O_PATH or not.
  std::optional<OpenFile> open_file(int fd) const;
  /// Opens for reading what a descriptor of ours, opened with O_PATH, refers to.
  Result<UniqueFd> reopen(int fd) const;

 private:
  /// Empty if it cannot be read.
  std::string environment(std::int32_t pid) const;
  template <typename Read>
  auto from_any_thread(std::int32_t pid, Read read) const;

  Result<UniqueFd> open_regular(const std::filesystem::path& path, std::int32_t pid, const char* what,
                                const char* hint) const;

  std::filesystem::path root_;
  std::shared_ptr<MountTables> mount_tables_;
  bool careful_ = false;
};

}  // namespace rtev
