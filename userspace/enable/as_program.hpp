// SPDX-License-Identifier: MIT
// Does something with the rights of a program, and nothing more.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <vector>

#include "enable/child_places.hpp"
#include "enable/held_process.hpp"
#include "helper/archive.hpp"

namespace rtev::enable {

/// Of the children of run_in_child(). A supervisor has to call it before it forks workers, so that they share them.
ChildPlaces& child_places();

/// Why run_in_child() has no answer.
enum class NoAnswer : std::uint8_t {
  late,      ///< it takes longer than a second, and is left behind
  no_place,  ///< earlier ones that were left behind have not ended yet: of this user, or of all
  failed,    ///< no process could be made, or it ended
};

/// Runs `work` in a child process, which has no descriptors of this one but `kept`, and returns its answer. For what
/// changes the process, or may wait for a file system. `user`: see charged_user().
std::expected<helper::Message, NoAnswer> run_in_child(std::uint32_t user, std::vector<int> kept,
                                                      const std::function<helper::Message()>& work);

/// How often a child of run_in_child() was late so far, in this process.
int unanswered_children();

/// Gives this process the rights of a program for files: its user and groups, and CAP_DAC_OVERRIDE only if the program
/// has it in this user namespace. The program's user can neither look into this process nor signal it. False if that
/// fails (errno).
bool become(const Credentials& credentials);

}  // namespace rtev::enable
