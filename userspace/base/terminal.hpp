// SPDX-License-Identifier: MIT
// What is known of a terminal.
#pragma once

#include <cstddef>

namespace rtev {

/// Columns of the terminal behind a file descriptor; 0 for what is no terminal.
std::size_t terminal_columns(int fd);

}  // namespace rtev
