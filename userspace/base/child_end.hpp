// SPDX-License-Identifier: MIT
// The end of a child process that ends by itself.
#pragma once

#include <sys/types.h>

#include "base/unique_fd.hpp"

namespace rtev {

/// Readable (epoll) once a process has ended. Without descriptors left: closed.
UniqueFd end_of(pid_t pid);

/// For a child whose channel was closed, which then ends at once unless somebody has stopped it: waits 100 ms at most,
/// and reaps it if it has ended. Does nothing if `pid` is not positive.
void await_end(pid_t pid);

}  // namespace rtev
