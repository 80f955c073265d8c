// SPDX-License-Identifier: MIT
// Hooks that are replaced now, on disk: if everything that would put them back is killed, a later run finds them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "enable/held_process.hpp"
#include "enable/hook.hpp"
#include "enable/ring_place.hpp"
#include "rtev/error.hpp"

namespace rtev::enable {

inline constexpr const char* journal_directory = "/run/rtev-bpf/hooks";

/// The supervisor process of a run. Its workers write the entries.
struct JournalOwner {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  bool operator==(const JournalOwner&) const = default;
};

/// A replaced hook, the file that was made for the ring, and of which process.
struct JournalEntry {
  JournalOwner owner{};  ///< whose worker replaced the hook
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat
  FileIdentity program{};         ///< that the process ran
  std::uint32_t user = 0;         ///< that it ran as
  ClaimedHook claim{};
  RingIdentity ring{};      ///< its file
  std::string ring_path{};  ///< as the program would open it; may hold any bytes

  bool operator==(const JournalEntry&) const = default;
};

/// A file for each entry, in a directory that only root may write to.
class Journal {
 public:
  static Result<Journal> open(std::filesystem::path directory = journal_directory);

  /// As long as it exists, no other run replaces the hook of a process, or puts it back for a run that ended.
  class Lock {
   public:
    Lock(Lock&& from) noexcept : file_(std::exchange(from.file_, -1)), place_(from.place_) {}
    Lock& operator=(Lock&&) = delete;
    ~Lock();

   private:
    friend class Journal;
    Lock(int file, std::int64_t place) : file_(file), place_(place) {}
    int file_;
    std::int64_t place_;
  };
  /// Does not wait: nothing if another run has it. The journal must outlive it. Copies of the object in child processes
  /// have the same locks.
  std::optional<Lock> lock(std::int32_t pid, std::uint64_t start_ticks) const;
  std::optional<Lock> lock(const HeldProcess& process) const { return lock(process.pid(), process.start_ticks()); }
  /// All locks of this run: the process that made them was killed.
  void unlock_all() const;

  /// To be called before the hook is replaced.
  Result<void> add(const JournalEntry& entry) const;
  /// The hook is put back.
  void remove(const JournalEntry& entry) const { remove(entry.pid, entry.start_ticks); }
  void remove(const HeldProcess& process) const { remove(process.pid(), process.start_ticks()); }
  /// An entry, and the lock of its process.
  struct Left {
    JournalEntry entry;
    Lock lock;
  };
  /// Entries of this owner, and of owners that have ended. Leaves out those that another run has locked; removes files
  /// that are no entries.
  std::vector<Left> left_to(const JournalOwner& own) const;

 private:
  Journal(std::filesystem::path path, UniqueFd lock) : directory_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_of(std::int32_t pid, std::uint64_t start_ticks) const;
  void remove(std::int32_t pid, std::uint64_t start_ticks) const;

  std::filesystem::path directory_;
  UniqueFd lock_;
};

}  // namespace rtev::enable
