// SPDX-License-Identifier: MIT
// Works on the files of a program as the program would: with its user and groups, below its root directory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/unique_fd.hpp"
#include "enable/process_status.hpp"

namespace rtev::enable {

/// Runs `work` in a child process, without this one's descriptors, and fills `result` with what it holds there
/// afterwards. For what changes the process, or may wait for a file system. False if it takes longer than a second: it
/// is left behind then.
bool run_in_child(std::span<std::byte> result, const std::function<void()>& work);

/// A directory as a program names it; "" is the one that it works in. Opened with O_PATH.
UniqueFd open_directory(std::int32_t pid, const std::string& path);

/// Gives this process the rights of a program: its user and groups, and CAP_DAC_OVERRIDE only if the program has it in
/// this user namespace. False if it cannot (errno).
bool become(const ProcessStatus& status, std::int32_t pid);

}  // namespace rtev::enable
