// SPDX-License-Identifier: MIT
#include "session/live/stacks/tables_cache.hpp"

#include <ranges>
#include <utility>

namespace rtev {

std::optional<TablesCache::Tables> TablesCache::find(const MappedFile& file) const {
  const auto known = tables_.find(file);
  return known != tables_.end() ? std::optional(known->second) : std::nullopt;
}

TablesCache::Tables TablesCache::add(MappedCode& code) {
  Tables tables;
  if (code.tables) {
    if (auto opened = ObjectTables::from_fd(std::move(code.tables)))
      tables = std::make_shared<const ObjectTables>(std::move(*opened));
  }
  const std::size_t bytes = tables ? tables->bytes() : 0;
  make_room(bytes);
  if (bytes_ + bytes > max_bytes || tables_.size() >= max_files) return nullptr;
  if (tables_.insert_or_assign(code.file, tables).second) bytes_ += bytes;
  return tables;
}

std::vector<MappedFile> TablesCache::files() const {
  const auto files = tables_ | std::views::keys;
  return {files.begin(), files.end()};
}

/// Forgets files that no process runs any more.
void TablesCache::make_room(std::size_t bytes) {
  if (bytes_ + bytes <= max_bytes && tables_.size() < max_files) return;
  std::erase_if(tables_, [this](const auto& entry) {
    if (entry.second && entry.second.use_count() > 1) return false;
    if (entry.second) bytes_ -= entry.second->bytes();
    return true;
  });
}

}  // namespace rtev
