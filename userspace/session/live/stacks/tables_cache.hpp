// SPDX-License-Identifier: MIT
// The tables of the files that traced processes run.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "inspect/process_view.hpp"
#include "unwind/object_tables.hpp"

namespace rtev {

/// One thread.
class TablesCache {
 public:
  using Tables = std::shared_ptr<const ObjectTables>;  ///< null: there are none for the file

  /// What is known of a file; nothing if it has not been looked at.
  std::optional<Tables> find(const MappedFile& file) const;
  /// Takes the descriptor of an answer. What is not valid counts as none.
  Tables add(MappedCode& code);
  std::vector<MappedFile> files() const;

 private:
  static constexpr std::size_t max_bytes = std::size_t{64} << 20, max_files = 8192;

  void make_room(std::size_t bytes);

  std::map<MappedFile, Tables> tables_;
  std::size_t bytes_ = 0;
};

}  // namespace rtev
