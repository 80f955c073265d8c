// SPDX-License-Identifier: MIT
// A process that puts a replaced hook back, and pauses events again, if the process that did it cannot.
#pragma once

#include <optional>
#include <utility>

#include "base/unique_fd.hpp"
#include "enable/hook.hpp"
#include "enable/target.hpp"
#include "rtev/error.hpp"

namespace rtev::enable {

/// The other side of the guardian process. It puts the hook back when this process ends or is killed, and when it takes
/// longer than it said (guard_timeout_ms more): it is stopped, or waits for the memory of the process. One thread.
class Guardian {
 public:
  static constexpr int guard_timeout_ms = 50;

  /// Forks it: call it before there are threads. It may read the memory of processes; it writes only to descriptors
  /// that it is sent.
  static Result<Guardian> start();

  /// Has the guardian pause the events of programs that are given to keep(), when the other end of this socket is
  /// closed or shut down, or this process ends. Its copy of the socket is closed after that.
  Result<void> watch(int tracer);

  /// Takes the guardian away from a process that has a copy of this object: it puts the hook back if that process had
  /// replaced it. The programs of keep() stay. False if the guardian is gone.
  bool renew();

  /// To be called before the hook is replaced, for this time at the most. Returns when the guardian knows it. False if
  /// the guardian is gone.
  bool hold(const ProcessMemory& memory, const ReplacedHook& hook, std::uint64_t window_ns);
  /// The hook is put back. False if the guardian was quicker, or is gone.
  bool let_go();
  /// The events of a program are about to come on, and to be paused at the end: see watch(). False if there is no room
  /// for another program of its user; nothing if the guardian is gone.
  std::optional<bool> keep(const Target& target);
  /// The programs of keep() are not paused at the end. False if the guardian is gone.
  bool leave();
  /// Hung up (poll(2)) when the guardian is gone.
  int end_fd() const { return channel_.get(); }

 private:
  explicit Guardian(UniqueFd channel) : channel_(std::move(channel)) {}
  UniqueFd channel_;
};

}  // namespace rtev::enable
