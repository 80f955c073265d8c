// SPDX-License-Identifier: MIT
// Programs of which a process came to harm: on disk, so that later runs leave them alone, too.
#pragma once

#include <cstddef>
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

/// A user can make any number of copies of a program, each another file. So all programs of a user with `max_of_user`
/// suspects are suspect. This does not hold for root, of whose programs up to `max_of_root` are remembered.
class Suspects {
 public:
  static constexpr std::size_t max_of_user = 16, max_of_root = 1024;

  /// False if it is suspect already, or the list has no room for another program of its user.
  bool insert(const UsersProgram& program);
  bool contains(const UsersProgram& program) const { return programs_.contains(program) || is_full(program.user); }
  bool is_full(std::uint32_t user) const;
  /// What to remove to have the program tried again; of a user who has too many, a pattern of files.
  std::string entry_of(const UsersProgram& program) const;

 private:
  std::size_t number_of(std::uint32_t user) const;

  std::set<UsersProgram> programs_;
};

/// Makes its entry.
Result<void> note_suspect(const UsersProgram& suspect);
/// Those of this run and of earlier ones since the host started.
Suspects read_suspects();

}  // namespace rtev::enable
