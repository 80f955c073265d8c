// SPDX-License-Identifier: MIT
// Captures libbpf's messages: nothing is printed, and the last warnings are kept to explain errors.
#pragma once

#include <string>

namespace rtev::kernel {

/// Captures libbpf's messages from now on. Further calls do nothing. Thread-safe.
void capture_libbpf_log();

/// Also prints every message of libbpf to stderr, including debug messages.
void set_libbpf_verbose(bool verbose);

/// The last few warnings of libbpf since the last call, as one line; empty if there were none. Thread-safe.
std::string take_libbpf_warnings();

}  // namespace rtev::kernel
