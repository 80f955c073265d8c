// SPDX-License-Identifier: MIT
#include "agent/listen_socket.hpp"

#include <arpa/inet.h>
#include <event2/util.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "base/escape.hpp"
#include "base/parse.hpp"

namespace rtev::agent {
namespace {

constexpr const char* what = "cannot listen on";
/// Who waits here is not turned away while connections that idle are ended.
constexpr int backlog = 1024;
constexpr int first_passed_fd = 3;  // as systemd has it

}  // namespace

Result<UniqueFd> listen_on(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  const auto port = parse_number<std::uint16_t>(colon != std::string::npos ? address.substr(colon + 1) : "");
  sockaddr_storage place{};
  int size = sizeof place;
  auto* const generic = reinterpret_cast<sockaddr*>(&place);
  const std::string host = address.substr(0, colon);
  // Which of the colons of "::1:9464" comes before the port is a guess.
  const bool is_clear = host.find(':') == std::string::npos || (host.starts_with('[') && host.ends_with(']'));
  if (!port || !is_clear || ::evutil_parse_sockaddr_port(host.c_str(), generic, &size) != 0)
    return std::unexpected(Error{.what = what,
                                 .subject = escaped(address),
                                 .why = "it is not ADDRESS:PORT, both as numbers",
                                 .hint = "e.g. --listen 127.0.0.1:9464, or [::]:9464 for all addresses"});
  auto& port_place = place.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(place).sin6_port
                                                 : reinterpret_cast<sockaddr_in&>(place).sin_port;
  port_place = htons(*port);
  UniqueFd socket(::socket(place.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno_error(errno, what, address);
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), generic, static_cast<socklen_t>(size)) != 0 || ::listen(socket.get(), backlog) != 0)
    return errno_error(errno, what, address,
                       errno == EADDRINUSE ? "another program has this port: give another one with --listen" : "");
  return socket;
}

UniqueFd take_passed_socket() {
  const char* const pid = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  const bool is_ours = pid != nullptr && parse_number<pid_t>(pid) == ::getpid() && count != nullptr &&
                       parse_number<int>(count).value_or(0) > 0;
  for (const char* const name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
  if (!is_ours) return {};
  ::fcntl(first_passed_fd, F_SETFD, FD_CLOEXEC);
  ::fcntl(first_passed_fd, F_SETFL, O_NONBLOCK);
  return UniqueFd(first_passed_fd);
}

std::string address_of(const UniqueFd& socket) {
  sockaddr_storage place{};
  socklen_t size = sizeof place;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&place), &size) != 0) return "a socket";
  if (place.ss_family == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in&>(place);
    ::inet_ntop(AF_INET, &ip.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(ip.sin_port));
  }
  if (place.ss_family != AF_INET6) return "a socket";
  const auto& ip = reinterpret_cast<const sockaddr_in6&>(place);
  ::inet_ntop(AF_INET6, &ip.sin6_addr, text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), ntohs(ip.sin6_port));
}

}  // namespace rtev::agent
