// SPDX-License-Identifier: MIT
#include "agent/host_check.hpp"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <strings.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>

namespace rtev::agent {
namespace {

bool is_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, text.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

/// Without the port, and without the brackets of an address of IPv6.
std::string name_of(std::string_view host) {
  if (host.starts_with('[')) return std::string(host.substr(1, host.find(']') - 1));
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(':') == colon;
  return std::string(has_port ? host.substr(0, colon) : host);
}

}  // namespace

bool is_known_host(std::string_view host, std::span<const std::string> allowed) {
  const std::string name = name_of(host);
  if (name.empty() || is_address(name) || ::strcasecmp(name.c_str(), "localhost") == 0) return true;
  utsname own{};
  if (::uname(&own) == 0 && ::strcasecmp(name.c_str(), own.nodename) == 0) return true;
  return std::ranges::any_of(
      allowed, [&](const std::string& glob) { return ::fnmatch(glob.c_str(), name.c_str(), FNM_CASEFOLD) == 0; });
}

}  // namespace rtev::agent
