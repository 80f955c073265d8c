// SPDX-License-Identifier: MIT
#include "base/terminal.hpp"

#include <sys/ioctl.h>

namespace rtev {

std::size_t terminal_columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace rtev
