// SPDX-License-Identifier: MIT
#include "base/terminal.hpp"

#include <sys/ioctl.h>

#include <atomic>

namespace rtev {
namespace {

std::atomic<void (*)()> restorer = nullptr;

}  // namespace

std::size_t terminal_columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void set_terminal_restorer(void (*restore)()) {
  restorer = restore;
}

void restore_terminal() {
  if (void (*const restore)() = restorer) restore();
}

}  // namespace rtev
