// SPDX-License-Identifier: MIT
// Programs of which a process came to harm: on disk, so that later runs leave them alone, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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

/// Once a user has so many of them, all of the user's programs are suspect: copies of a program are different programs.
/// But for root's, of whom more are remembered.
class Suspects {
 public:
  static constexpr std::size_t max_of_user = 16, max_of_root = 1024;

  /// False if it is suspect already.
  bool insert(const UsersProgram& program);
  bool contains(const UsersProgram& program) const { return programs_.contains(program) || is_full(program.user); }
  bool is_full(std::uint32_t user) const;
  /// What to remove to have the program tried again; of a user who has too many, a pattern of files.
  std::string entry_of(const UsersProgram& program) const;

 private:
  std::set<UsersProgram> programs_;
  std::map<std::uint32_t, std::size_t> count_;  ///< by user
};

/// Makes its entry.
Result<void> note_suspect(const UsersProgram& suspect);
/// Those of this run and of earlier ones since the host started.
Suspects read_suspects();

}  // namespace rtev::enable
