// SPDX-License-Identifier: MIT
// The agent that replaces this one, as this one sees it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "cli/agent/handover.hpp"

namespace rtev::cli {

/// One thread, but for welcome(). Nothing waits.
class Successor {
 public:
  Successor();

  /// The connection of an agent that wants to replace this one is taken, and the offer sent. An answer that refuses, if
  /// there is another one already. Any thread.
  std::string welcome(UniqueFd& connection, Offer offer);

  /// Readable (epoll) when take() has something to do.
  int event_fd() const { return epoll_.get(); }
  /// The time from which on it wants to count, once.
  std::optional<std::uint64_t> take();
  /// It cannot have what it asked for.
  void refuse(const std::string& why);
  /// False if there is none, or it has ended.
  bool is_there();
  /// False if it has not got them.
  bool give(const Figures& figures);
  pid_t pid() const { return pid_; }
  /// After take(): whether it takes care of programs whose events are on.
  bool enables() const { return enables_; }

 private:
  void dismiss();

  UniqueFd epoll_;
  std::mutex mutex_;
  UniqueFd connection_;  ///< guarded by mutex_
  pid_t pid_ = 0;
  bool enables_ = true;  ///< earlier versions do not say it
};

}  // namespace rtev::cli
