// SPDX-License-Identifier: MIT
#pragma once

namespace rtev {

/// Closes a file on a thread of its own. The last one to close a file that was removed frees its pages: that can take
/// a second for a large file on tmpfs. Thread-safe. The order of calls is kept. At the end of the process the kernel
/// closes what still waits.
void close_in_background(int fd);

}  // namespace rtev
