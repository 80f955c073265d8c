// SPDX-License-Identifier: MIT
#include "cli/messages.hpp"

#include <fmt/core.h>

#include <cstdio>

#include "base/exit_status.hpp"

namespace rtev::cli {

int report(const Error& error) {
  fmt::print(stderr, "rtev-bpf: {}\n", error.message());
  if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", error.hint);
  return exit_failure;
}

}  // namespace rtev::cli
