// SPDX-License-Identifier: MIT
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace rtev {

/// Raises the limit of open files as far as that is allowed. Returns what it is then.
inline std::size_t raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  if (const rlimit highest{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
      limit.rlim_cur < limit.rlim_max && ::setrlimit(RLIMIT_NOFILE, &highest) == 0)
    return highest.rlim_cur;
  return limit.rlim_cur;
}

}  // namespace rtev
