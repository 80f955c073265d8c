// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"

namespace rtev {

/// A file of /proc or /sys, up to `limit` bytes of it; nothing if it cannot be opened or read.
inline std::optional<std::string> read_small_file(const std::filesystem::path& path, std::size_t limit) {
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)};
  if (!fd) return std::nullopt;
  std::string text;
  std::array<char, 4096> chunk;
  while (text.size() < limit) {
    const ssize_t got = ::read(fd.get(), chunk.data(), std::min(chunk.size(), limit - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace rtev
