// SPDX-License-Identifier: MIT
#pragma once

namespace rtev {

/// Has the calling thread scheduled soon after it wakes up. On a busy host it must not wait for longer than rings last:
/// one of 2^16 words may fill up in three milliseconds. Where that is not allowed nothing changes. Not inherited.
void raise_thread_priority();

}  // namespace rtev
