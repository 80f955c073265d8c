// SPDX-License-Identifier: MIT
#include "base/background_close.hpp"

#include <unistd.h>

#include <utility>

namespace rtev {
namespace {

std::function<void(int fd)>& background_close() {
  static std::function<void(int fd)> close;
  return close;
}

}  // namespace

void close_in_background(int fd) {
  if (background_close()) {
    background_close()(fd);
  } else {
    ::close(fd);
  }
}

void set_background_close(std::function<void(int fd)> close) {
  background_close() = std::move(close);
}

}  // namespace rtev
