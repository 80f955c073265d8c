// SPDX-License-Identifier: MIT
// Reads and writes words of another process's memory.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev::enable {

/// The memory of one program: when the process ends or runs another program, reads and writes fail. Any of them may
/// wait for as long as the owner of the process likes (a page of a file that a program serves). Addresses are of the
/// process.
class ProcessMemory {
 public:
  /// `directory`: /proc/PID. The file is opened as this user, who has to be that of the process. Needs CAP_SYS_PTRACE
  /// in the user namespace of the process, or to be its user.
  static Result<ProcessMemory> open(std::int32_t pid, const UniqueFd& directory, uid_t user);
  ProcessMemory() = default;
  /// The same file, opened by another process; this one needs the same right.
  ProcessMemory(UniqueFd fd, std::int32_t pid) : fd_(std::move(fd)), pid_(pid) {}

  /// False once the process has ended, or runs another program.
  bool is_alive() const;
  /// Nothing if it cannot be read.
  std::optional<std::uint64_t> word(std::uint64_t address) const;
  /// Reads up to this many bytes; less at the end of a mapping.
  std::string bytes(std::uint64_t address, std::size_t max_bytes) const;
  /// A text that ends within `max_bytes`.
  std::optional<std::string> text(std::uint64_t address, std::size_t max_bytes) const;
  /// Writes an aligned word, as a whole. False if it cannot be written.
  bool write_word(std::uint64_t address, std::uint64_t value) const;

  const UniqueFd& fd() const { return fd_; }
  std::int32_t pid() const { return pid_; }

 private:
  std::size_t read(std::uint64_t address, void* bytes, std::size_t size) const;

  UniqueFd fd_;
  std::int32_t pid_ = 0;
};

}  // namespace rtev::enable
