// SPDX-License-Identifier: MIT
// A process that puts a replaced hook back if the process that replaced it does not.
#pragma once

#include <utility>

#include "base/unique_fd.hpp"
#include "enable/journal.hpp"
#include "rtev/error.hpp"

namespace rtev::enable {

/// The other side of the guardian process. It puts the hook back when this process ends or is killed, and when it takes
/// too long (guard_timeout_ms): it is stopped, or waits for the memory of the process. One thread.
class Guardian {
 public:
  static constexpr int guard_timeout_ms = 100;

  /// Forks it: call it before there are threads. It has no rights, only the descriptors that it is sent.
  static Result<Guardian> start(Journal journal);

  /// To be called before the hook is replaced. Returns when the guardian knows it.
  Result<void> hold(const ProcessMemory& memory, const JournalEntry& entry);
  /// The hook is put back. False if the guardian was quicker, or is gone.
  bool release();

 private:
  explicit Guardian(UniqueFd channel) : channel_(std::move(channel)) {}
  UniqueFd channel_;
};

}  // namespace rtev::enable
