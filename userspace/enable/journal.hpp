// SPDX-License-Identifier: MIT
// Hooks that are replaced now, on disk: if everything that would put them back is killed, a later run finds them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/unique_fd.hpp"
#include "enable/hook.hpp"
#include "rtev/error.hpp"

namespace rtev::enable {

inline constexpr const char* journal_directory = "/run/rtev-bpf/hooks";

/// A replaced hook, and in which process: its pid and start time (field 22 of /proc/PID/stat).
struct JournalEntry {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  ReplacedHook hook{};
};

/// A file for each entry, in a directory that only root may write to.
class Journal {
 public:
  static Result<Journal> open(std::filesystem::path directory = journal_directory);

  /// One process at a time replaces hooks, or puts those back that others left. Waits for the others, but not for
  /// long: false if one of them takes too long.
  bool lock() const;
  void unlock() const;

  /// To be called before the hook is replaced.
  Result<void> add(const JournalEntry& entry) const;
  /// The hook is put back.
  void remove(const JournalEntry& entry) const;
  /// What others left behind. To be called with the lock; removes files that are no entries.
  std::vector<JournalEntry> entries() const;

 private:
  Journal(std::filesystem::path path, UniqueFd fd) : directory_(std::move(path)), fd_(std::move(fd)) {}
  std::filesystem::path path_of(const JournalEntry& entry) const;

  std::filesystem::path directory_;
  UniqueFd fd_;
};

}  // namespace rtev::enable
