// SPDX-License-Identifier: MIT
#include "cli/held_messages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace rtev::cli {

HeldMessages::HeldMessages() {
  if (::isatty(STDERR_FILENO) != 1) return;
  UniqueFd held(::memfd_create("messages", MFD_CLOEXEC));
  UniqueFd before(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  if (!held || !before || ::dup2(held.get(), STDERR_FILENO) < 0) return;
  stderr_ = std::move(before);
  held_ = std::move(held);
}

HeldMessages::~HeldMessages() {
  if (!held_) return;
  std::fflush(stderr);
  ::dup2(stderr_.get(), STDERR_FILENO);
  ::lseek(held_.get(), 0, SEEK_SET);
  std::array<char, 4096> bytes;
  ssize_t size = 0;
  while ((size = ::read(held_.get(), bytes.data(), bytes.size())) > 0) {
    if (::write(STDERR_FILENO, bytes.data(), static_cast<std::size_t>(size)) != size) return;
  }
}

}  // namespace rtev::cli
