// SPDX-License-Identifier: MIT
// What the numbers of system calls in scheduler records mean.
#pragma once

#include <cstdint>

#include "stream/records.hpp"

namespace rtev::kernel {

/// `number`: of this machine's architecture, or RTEV_SYSCALL_NONE or RTEV_SYSCALL_UNKNOWN.
Syscall syscall_of(std::int32_t number);

}  // namespace rtev::kernel
