// SPDX-License-Identifier: MIT
// What is known of a terminal.
#pragma once

#include <cstddef>

namespace rtev {

/// Columns of the terminal behind a file descriptor; 0 for what is no terminal.
std::size_t terminal_columns(int fd);

/// Sets the function that gives the terminal its mode back; null: the mode was not changed. Signal handlers call it.
void set_terminal_restorer(void (*restore)());
/// To be called before the process ends at once: destructors do not run then. For signal handlers, too.
void restore_terminal();

}  // namespace rtev
