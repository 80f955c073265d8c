// SPDX-License-Identifier: MIT
// The tables of the files that traced processes run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "inspect/process_view.hpp"
#include "unwind/object_tables.hpp"

namespace rtev {

/// A user's programs are given a part of the memory: others keep their names whatever one user runs. Root's programs
/// may take all of it. Each user whose programs run a file is charged with its tables, and what is refused to one user
/// is not refused to the next: no user's share depends on what others run. One thread.
class TablesCache {
 public:
  using Tables = std::shared_ptr<const ObjectTables>;  ///< null: there are none for the file

  /// What a user's programs may use of a file; nothing if it has to be asked for.
  std::optional<Tables> find(const MappedFile& file, std::uint32_t user);
  /// Takes the descriptor of an answer. What is not valid counts as none.
  Tables add(MappedCode& code, std::uint32_t user);
  /// Files that need not be read for this user. What was refused to him is read again once there is room for it.
  std::vector<MappedFile> known_to(std::uint32_t user);

  /// How often tables were refused to a user for lack of room, or were cut (ObjectTables::is_cut).
  std::uint64_t left_out() const { return left_out_; }

  static constexpr std::size_t max_bytes = std::size_t{64} << 20, max_files = 8192;
  static constexpr std::size_t max_bytes_of_user = max_bytes / 4, max_files_of_user = max_files / 4;

 private:
  struct Entry {
    /// A pointer of this user's own: it counts the mappings of his processes, besides this entry.
    Tables tables{};
    std::size_t refused_bytes = 0;
    bool is_used() const { return tables.use_count() > 1; }
  };
  struct User {
    std::map<MappedFile, Entry> files{};
    std::size_t bytes = 0;
  };
  struct Built {
    Tables tables;
    std::size_t users = 0;  ///< that have an entry with them
  };

  Tables take(const MappedFile& file, Tables built, std::uint32_t user);
  bool make_room(const MappedFile& file, std::size_t bytes, std::uint32_t user);
  void forget_unused(User& user);
  void forget_refusals(User& user, bool is_root);

  std::map<std::uint32_t, User> users_;
  std::map<MappedFile, Built> built_;
  std::size_t bytes_ = 0;    ///< of all in built_
  std::size_t entries_ = 0;  ///< of all users
  std::uint64_t left_out_ = 0;
};

}  // namespace rtev
