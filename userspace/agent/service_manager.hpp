// SPDX-License-Identifier: MIT
// Tells systemd how a service is (Type=notify): one datagram a message, without its library.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "base/unique_fd.hpp"

namespace rtev::agent {

/// Made before the process gives up its right to make sockets. Without a service manager it does nothing.
class ServiceManager {
 public:
  /// Takes NOTIFY_SOCKET and WATCHDOG_USEC from the environment, and removes them: call it before there are threads.
  ServiceManager();
  /// The same as another process has it.
  ServiceManager(UniqueFd socket, std::optional<std::chrono::microseconds> watchdog)
      : socket_(std::move(socket)), watchdog_(watchdog) {}

  int socket() const { return socket_.get(); }  ///< -1: there is no service manager
  /// "READY=1", "STOPPING=1", "STATUS=...". Never waits.
  void notify(std::string_view state) const;
  /// How often "WATCHDOG=1" is wanted: half of what the service manager waits for.
  std::optional<std::chrono::microseconds> watchdog_interval() const { return watchdog_; }

 private:
  UniqueFd socket_;
  std::optional<std::chrono::microseconds> watchdog_{};
};

}  // namespace rtev::agent
