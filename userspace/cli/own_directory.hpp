// SPDX-License-Identifier: MIT
// Directories that the tracer makes for itself.
#pragma once

#include <string>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev::cli {

/// Opens a directory, for reading, with the rights of the user who called the tracer. What is missing of the path is
/// made, for that user only. Refuses one that belongs to another user, or that others may write.
Result<UniqueFd> open_own_directory(const std::string& path);

/// Where dumps go: STATE_DIRECTORY, as systemd sets it; /var/lib/rtev-bpf for root; below the home directory for
/// others.
std::string default_dump_directory();
/// Where the sockets of recorders are: "recorders" in RUNTIME_DIRECTORY, /run/rtev-bpf, or /run/user/UID/rtev-bpf.
std::string runtime_directory();

}  // namespace rtev::cli
