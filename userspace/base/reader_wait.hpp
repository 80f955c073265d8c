// SPDX-License-Identifier: MIT
// Whether this process waits for whoever reads its output: the other end of a pipe, or a terminal.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rtev {

/// Says that a thread writes to a reader while the object lives. One object of each kind at a time.
class ReaderWait {
 public:
  enum class Of : std::uint8_t { output, messages };

  explicit ReaderWait(Of kind) : checks_(all_checks_.at(static_cast<std::size_t>(kind))) { note_progress(); }
  ReaderWait(const ReaderWait&) = delete;
  ReaderWait& operator=(const ReaderWait&) = delete;
  ~ReaderWait() { checks_ = 0; }

  /// The reader took something.
  void note_progress() { checks_ = 1; }
  /// How many calls in a row found that a reader has taken nothing since the call before. Call it at intervals: time
  /// in which the whole host stands still counts as one. Async-signal-safe.
  static std::uint32_t check() {
    std::uint32_t longest = 0;
    for (auto& checks : all_checks_) {
      std::uint32_t before = checks;
      if (before != 0 && checks.compare_exchange_strong(before, before + 1)) longest = std::max(longest, before - 1);
    }
    return longest;
  }

 private:
  static inline std::array<std::atomic<std::uint32_t>, 2> all_checks_{};  ///< 0: not waiting; 1 + checks since progress

  std::atomic<std::uint32_t>& checks_;
};

}  // namespace rtev
