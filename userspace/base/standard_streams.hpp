// SPDX-License-Identifier: MIT
#pragma once

namespace rtev {

/// Keeps the numbers of stdin, stdout and stderr from other files if this process was started with some of them closed,
/// for else messages would be written into a file that was opened later. Reading and writing still fails with EBADF.
/// To be called before anything is opened.
void reserve_standard_streams();

}  // namespace rtev
