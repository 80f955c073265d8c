// SPDX-License-Identifier: MIT
// Ending a load by a signal, which also ends sleeps.
#pragma once

#include <signal.h>

#include <cstdint>

namespace rtev::load {

/// From now on SIGINT, SIGTERM and SIGHUP call request_stop(), unless they are ignored already (nohup). SIGPIPE is
/// ignored: write() reports the error. Forked children inherit both.
void catch_stop_signals();
/// Blocks these signals, so that they arrive only during a ppoll() with the returned mask. Forked children inherit it.
sigset_t block_stop_signals();
void unblock_stop_signals();

bool stop_requested();
void request_stop();

inline constexpr std::uint64_t never = UINT64_MAX;

/// Sleeps until a time of CLOCK_MONOTONIC, or until a stop is requested. Thread-safe.
void sleep_until(std::uint64_t time_ns);

}  // namespace rtev::load
