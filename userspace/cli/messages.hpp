// SPDX-License-Identifier: MIT
#pragma once

#include "rtev/error.hpp"

namespace rtev::cli {

/// Prints "rtev-bpf: what subject: why" and, if there is one, "hint: ..." to stderr. Returns exit_failure.
int report(const Error& error);

}  // namespace rtev::cli
