// SPDX-License-Identifier: MIT
#include "agent/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/parse.hpp"

namespace rtev::agent {
namespace {

/// The variable, which is removed.
std::string take_variable(const char* name) {
  const char* const value = std::getenv(name);
  std::string taken = value != nullptr ? value : "";
  ::unsetenv(name);
  return taken;
}

}  // namespace

ServiceManager::ServiceManager() {
  const std::string path = take_variable("NOTIFY_SOCKET"), timeout = take_variable("WATCHDOG_USEC"),
                    pid = take_variable("WATCHDOG_PID");
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() < 2 || path.size() >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return;
  path.copy(address.sun_path, path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';  // not a file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return;
  socket_ = std::move(socket);
  if (!pid.empty() && parse_number<pid_t>(pid) != ::getpid()) return;
  if (const auto us = parse_number<std::uint64_t>(timeout); us && *us > 1)
    watchdog_ = std::chrono::microseconds(*us / 2);
}

void ServiceManager::notify(std::string_view state) const {
  if (socket_) ::send(socket_.get(), state.data(), state.size(), MSG_NOSIGNAL);
}

}  // namespace rtev::agent
