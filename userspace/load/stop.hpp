// SPDX-License-Identifier: MIT
// The end that a signal asks for, and sleep that it cuts short.
#pragma once

#include <signal.h>

#include <cstdint>

namespace rtev::load {

/// From here on SIGINT, SIGTERM and SIGHUP ask for the end; what was ignored from the start (nohup) stays ignored.
/// SIGPIPE is ignored: who writes sees the error. Forked children inherit both.
void catch_stop_signals();
/// Blocked, they come only where they are waited for, with the mask that this returns. A fork leaves them blocked.
sigset_t block_stop_signals();
void unblock_stop_signals();

bool stop_requested();
void request_stop();

inline constexpr std::uint64_t never = UINT64_MAX;

/// Sleeps until a time of CLOCK_MONOTONIC, or until the end is asked for. Any number of threads at a time.
void sleep_until(std::uint64_t time_ns);

}  // namespace rtev::load
