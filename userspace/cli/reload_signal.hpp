// SPDX-License-Identifier: MIT
// SIGHUP asks a service to read its configuration file again.
#pragma once

#include <signal.h>

#include "base/unique_fd.hpp"

namespace rtev::cli {

/// One object at a time.
class ReloadSignal {
 public:
  ReloadSignal() = default;
  ReloadSignal(const ReloadSignal&) = delete;
  ReloadSignal& operator=(const ReloadSignal&) = delete;
  ~ReloadSignal();

  /// From now on SIGHUP does not end the process. Call it when the handlers of StopSignal are in place.
  void catch_it();
  /// Readable (epoll) when SIGHUP has come.
  int event_fd() const { return event_.get(); }
  /// Takes all that have come.
  void take() { event_.clear(); }

 private:
  EventFd event_;
  bool is_caught_ = false;
  struct sigaction previous_{};
};

}  // namespace rtev::cli
