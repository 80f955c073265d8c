// SPDX-License-Identifier: MIT
// Does something with the rights of a program, and nothing more.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "enable/held_process.hpp"
#include "helper/archive.hpp"

namespace rtev::enable {

/// Runs `work` in a child process, which has no descriptors of this one but `kept`, and returns its answer. For what
/// changes the process, or may wait for a file system. Nothing if it takes longer than a second: it is left behind
/// then. Nor if two that were left behind for this user (see charged_user()), or too many of all, have not ended yet.
std::optional<helper::Message> run_in_child(std::uint32_t user, std::vector<int> kept,
                                            const std::function<helper::Message()>& work);

/// How often run_in_child() had no answer so far, in this process.
int unanswered_children();

/// Gives this process the rights of a program for files: its user and groups, and CAP_DAC_OVERRIDE only if the program
/// has it in this user namespace. The program's user can neither look into this process nor signal it. False if that
/// fails (errno).
bool become(const Credentials& credentials);

}  // namespace rtev::enable
