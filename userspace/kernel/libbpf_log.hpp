// SPDX-License-Identifier: MIT
// Where libbpf's own messages go: nowhere, but the last warnings are kept to explain a failure.
#pragma once

#include <string>

namespace rtev::kernel {

/// Takes libbpf's messages from the first call on; safe to call again. Thread-safe.
void capture_libbpf_log();

/// Prints every message of libbpf, debug messages too, to stderr as well.
void set_libbpf_verbose(bool verbose);

/// The last warnings of libbpf since the last call, as one line; empty if there were none. Thread-safe.
std::string take_libbpf_warnings();

}  // namespace rtev::kernel
