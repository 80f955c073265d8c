// SPDX-License-Identifier: MIT
#include "base/capabilities.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace rtev {

bool keep_capabilities(std::span<const unsigned> kept) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> held{};
  if (::syscall(SYS_capget, &header, held.data()) != 0) return false;
  std::array<std::uint32_t, 2> mask{};
  for (const unsigned capability : kept) mask.at(capability / 32) |= 1u << (capability % 32);
  for (std::size_t word = 0; word < held.size(); ++word) {
    held.at(word).permitted &= mask.at(word);
    held.at(word).effective = held.at(word).permitted;
    held.at(word).inheritable = 0;
  }
  return ::syscall(SYS_capset, &header, held.data()) == 0;
}

bool has_capability(unsigned capability) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> held{};
  if (::syscall(SYS_capget, &header, held.data()) != 0) return false;
  return (held.at(capability / 32).effective >> capability % 32 & 1) != 0;
}

std::string hint_for_capability(std::string_view name, bool is_root) {
  const std::string_view option = name.substr(std::string_view("CAP_").size());
  if (!is_root) return fmt::format("run as root (sudo), in a container with --cap-add={}", option);
  return fmt::format(
      "root was started without it here: a container needs --cap-add={}, a systemd unit {} in CapabilityBoundingSet",
      option, name);
}

}  // namespace rtev
