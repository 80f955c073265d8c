// SPDX-License-Identifier: MIT
// One process, held: what is read, written or created on its behalf cannot reach another process, program or user.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "enable/process_memory.hpp"
#include "enable/refused.hpp"

namespace rtev::enable {

/// A file of a file system: device and inode.
using FileIdentity = std::pair<std::uint64_t, std::uint64_t>;

/// The rights of a process that has the same ids for everything that it does. Ids are as this process sees them.
struct Credentials {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups{};
  std::uint64_t capabilities = 0;            ///< effective, in its user namespace
  std::uint64_t user_namespace = 0;          ///< inode
  std::optional<uid_t> namespace_root = {};  ///< user 0 of its user namespace; nothing if that has none

  bool operator==(const Credentials&) const = default;
};

/// A process that has more rights than its user.
std::unexpected<Refused> privileged(std::string why);
inline constexpr const char* not_dumpable = "its user may not read its memory (it is not dumpable)";

/// A process as it was when hold() looked at it: its pidfd, its directory in /proc, and the memory of the program that
/// it ran. The descriptors never lead to a later process with the same pid; those of the memory do not lead to a later
/// program of the same process. May wait for as long as the owner of the process likes. One thread.
class HeldProcess {
 public:
  /// `start_ticks` (field 22 of /proc/PID/stat) tells it from others with its pid; 0: any. Refuses only one that is
  /// gone.
  static Checked<HeldProcess> hold(std::int32_t pid, std::uint64_t start_ticks);

  /// The memory of a child that this process has forked, and that still runs the same program, whatever its rights are
  /// by now. Nothing if it is no such child.
  std::optional<ProcessMemory> memory_of_child(std::int32_t pid, std::uint64_t start_ticks) const;

  /// Refuses a process whose memory must not be written: the kernel denies it, or its rights are not those of one user
  /// (set-user-ID and set-group-ID programs, file capabilities, a memory that its user may not read). The other members
  /// have no meaning then.
  const Checked<void>& may_write() const { return may_write_; }

  std::int32_t pid() const { return pid_; }
  std::uint64_t start_ticks() const { return start_ticks_; }
  const UniqueFd& pidfd() const { return pidfd_; }
  const Credentials& credentials() const { return credentials_; }
  const FileIdentity& program() const { return program_; }
  const ProcessMemory& memory() const { return memory_; }

  /// Refuses if the process has ended, runs another program, or has other rights than hold() found. To be called right
  /// before something is changed.
  Checked<void> check_unchanged() const;

  bool has_ended() const;
  /// Whether its root directory is the one that it had.
  bool has_its_root() const;
  /// The same of its mount namespace.
  bool has_its_mounts() const;
  /// Whether both had the same root directory when they were held.
  bool has_root_of(const HeldProcess& other) const { return root_ == other.root_; }
  bool has_mounts_of(const HeldProcess& other) const { return mounts_ == other.mounts_; }
  /// Its directory in /proc.
  const UniqueFd& directory() const { return directory_; }
  /// Opens a file of that directory.
  UniqueFd open(const char* name, int flags) const;
  /// Reads the first bytes of such a file; nothing if the process is gone.
  std::optional<std::string> read(const char* name, std::size_t max_bytes = 1 << 20) const;
  /// A variable of the environment that the program was started with.
  std::optional<std::string> started_with(std::string_view name) const;

 private:
  HeldProcess(std::int32_t pid, UniqueFd pidfd, UniqueFd directory)
      : pid_(pid), pidfd_(std::move(pidfd)), directory_(std::move(directory)) {}
  Checked<void> look(std::uint64_t start_ticks);
  Checked<Credentials> read_credentials() const;
  std::optional<FileIdentity> identity_of(const char* link) const;

  std::int32_t pid_;
  UniqueFd pidfd_, directory_;
  std::uint64_t start_ticks_ = 0;
  Checked<void> may_write_{};
  Credentials credentials_{};
  FileIdentity program_{};
  std::string
      vector_{};  ///< /proc/PID/auxv: addresses and rights that the kernel gave the program when it was executed
  std::optional<FileIdentity> root_{}, mounts_{};
  ProcessMemory memory_{};
};

}  // namespace rtev::enable
