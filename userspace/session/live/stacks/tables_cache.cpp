// SPDX-License-Identifier: MIT
#include "session/live/stacks/tables_cache.hpp"

#include <ranges>
#include <utility>

namespace rtev {

std::optional<TablesCache::Tables> TablesCache::find(const MappedFile& file) const {
  const auto known = tables_.find(file);
  return known != tables_.end() ? std::optional(known->second.tables) : std::nullopt;
}

TablesCache::Tables TablesCache::add(MappedCode& code, std::uint32_t user) {
  Tables tables;
  if (code.tables) {
    if (auto opened = ObjectTables::from_fd(std::move(code.tables)))
      tables = std::make_shared<const ObjectTables>(std::move(*opened));
  }
  std::size_t bytes = tables ? tables->bytes() : 0;
  if (!has_room(bytes, user)) forget_unused();
  // That there was no room is remembered, too: else the tables would be built for each process.
  if (!has_room(bytes, user)) {
    tables = nullptr;
    bytes = 0;
  }
  if (!has_room(bytes, user) || !tables_.try_emplace(code.file, tables, user).second) return nullptr;
  bytes_ += bytes;
  Use& use = use_of_users_[user];
  use.bytes += bytes;
  ++use.files;
  return tables;
}

std::vector<MappedFile> TablesCache::files() const {
  const auto files = tables_ | std::views::keys;
  return {files.begin(), files.end()};
}

bool TablesCache::has_room(std::size_t bytes, std::uint32_t user) const {
  if (bytes_ + bytes > max_bytes || tables_.size() >= max_files) return false;
  const auto use = use_of_users_.find(user);
  return user == 0 || use == use_of_users_.end() ||
         (use->second.bytes + bytes <= max_bytes_of_user && use->second.files < max_files_of_user);
}

/// Forgets files that no process runs any more.
void TablesCache::forget_unused() {
  std::erase_if(tables_, [this](const auto& entry) {
    const auto& [tables, user] = entry.second;
    if (tables && tables.use_count() > 1) return false;
    const std::size_t bytes = tables ? tables->bytes() : 0;
    bytes_ -= bytes;
    const auto use = use_of_users_.find(user);
    use->second.bytes -= bytes;
    if (--use->second.files == 0) use_of_users_.erase(use);
    return true;
  });
}

}  // namespace rtev
