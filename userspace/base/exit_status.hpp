// SPDX-License-Identifier: MIT
// Exit statuses of rtev-bpf and rtev-load. With "-- CMD" rtev-bpf passes on the status of CMD instead.
#pragma once

namespace rtev {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failure = 1;      ///< an error at run time
inline constexpr int exit_usage = 2;        ///< the command line is wrong
inline constexpr int exit_limit = 3;        ///< a limit of --fail-if was exceeded, or nothing was measured for it
inline constexpr int exit_of_signal = 128;  ///< plus the number of the signal

}  // namespace rtev
