// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

namespace rtev {

/// Closes a file that another process made. The last one to close a file that was removed frees its blocks: for a large
/// file in many pieces that takes the kernel seconds, and the end of this process would wait for it, too. So whoever
/// can have another process close it sets how. Without that it is closed at once. Unmap the file first. Thread-safe.
void close_in_background(int fd);

/// Call it while no other thread may close files. Nothing: at once again.
void set_background_close(std::function<void(int fd)> close);

}  // namespace rtev
