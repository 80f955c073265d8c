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
/// may take all of it. One thread.
class TablesCache {
 public:
  using Tables = std::shared_ptr<const ObjectTables>;  ///< null: there are none for the file

  /// What is known of a file; nothing if it has not been looked at.
  std::optional<Tables> find(const MappedFile& file) const;
  /// Takes the descriptor of an answer. What is not valid counts as none.
  Tables add(MappedCode& code, std::uint32_t user);
  std::vector<MappedFile> files() const;

 private:
  static constexpr std::size_t max_bytes = std::size_t{64} << 20, max_files = 8192;
  static constexpr std::size_t max_bytes_of_user = max_bytes / 4, max_files_of_user = max_files / 4;

  struct Entry {
    Tables tables;
    std::uint32_t user;
  };
  struct Use {
    std::size_t bytes = 0, files = 0;
  };

  bool has_room(std::size_t bytes, std::uint32_t user) const;
  void forget_unused();

  std::map<MappedFile, Entry> tables_;
  std::map<std::uint32_t, Use> use_of_users_;
  std::size_t bytes_ = 0;
};

}  // namespace rtev
