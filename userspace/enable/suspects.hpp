// SPDX-License-Identifier: MIT
// Programs of which a process came to harm: on disk, so that later runs leave them alone, too.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "enable/held_process.hpp"
#include "rtev/error.hpp"

namespace rtev::enable {

/// A program that a user runs. Others who run it do not suffer from what the user's processes do.
struct UsersProgram {
  FileIdentity file{};   ///< of the program, or of its runtime
  std::uint32_t user{};  ///< charged_user() of the process
  auto operator<=>(const UsersProgram&) const = default;
};
using Suspects = std::set<UsersProgram>;

/// The entry of a program. Whoever removes it has the program tried again.
std::string suspect_path(const UsersProgram& suspect);
Result<void> note_suspect(const UsersProgram& suspect);
/// Those of this run and of earlier ones since the host started.
Suspects read_suspects();

}  // namespace rtev::enable
