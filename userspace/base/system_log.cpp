// SPDX-License-Identifier: MIT
#include "base/system_log.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <ctime>

#include "base/unique_fd.hpp"

namespace rtev {

void log_notice(std::string_view message, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const UniqueFd log(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!log) return;
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%b %e %T", &local);
  // As syslog(3) writes it, which would wait.
  const std::string line =
      fmt::format("<{}>{} rtev-bpf[{}]: {}", LOG_DAEMON | LOG_NOTICE, time.data(), ::getpid(), message);
  ::sendto(log.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

}  // namespace rtev
