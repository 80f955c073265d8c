// SPDX-License-Identifier: MIT
#include "session/live/stacks/tables_cache.hpp"

#include <utility>

namespace rtev {

std::optional<TablesCache::Tables> TablesCache::find(const MappedFile& file, std::uint32_t user) {
  if (const auto known = users_.find(user); known != users_.end()) {
    const auto entry = known->second.files.find(file);
    if (entry != known->second.files.end()) return entry->second.tables;
  }
  // Built for another user.
  const auto built = built_.find(file);
  return built != built_.end() ? std::optional(take(file, built->second.tables, user)) : std::nullopt;
}

TablesCache::Tables TablesCache::add(MappedCode& code, std::uint32_t user) {
  // Several queries may have asked for it.
  if (const auto known = find(code.file, user)) return *known;
  Tables tables;
  if (code.tables) {
    if (auto opened = ObjectTables::from_fd(std::move(code.tables)))
      tables = std::make_shared<const ObjectTables>(std::move(*opened));
  }
  left_out_ += tables && tables->is_cut() ? 1 : 0;
  return take(code.file, std::move(tables), user);
}

TablesCache::Tables TablesCache::take(const MappedFile& file, Tables built, std::uint32_t user) {
  const std::size_t bytes = built ? built->bytes() : 0;
  const bool has_room = make_room(file, bytes, user);
  left_out_ += has_room ? 0 : 1;
  // That there was no room is remembered, too: else the tables would be built for each of his processes.
  if (!has_room && !make_room(file, 0, user)) return nullptr;
  Entry entry{.refused_bytes = has_room ? 0 : bytes};
  if (has_room && built) {
    Built& shared = built_.try_emplace(file, Built{.tables = built}).first->second;
    if (shared.users++ == 0) bytes_ += bytes;
    users_[user].bytes += bytes;
    const ObjectTables* const tables = built.get();
    entry.tables = Tables(tables, [kept = std::move(built)](const ObjectTables*) {});
  }
  ++entries_;
  return users_[user].files.emplace(file, std::move(entry)).first->second.tables;
}

std::vector<MappedFile> TablesCache::known_to(std::uint32_t user) {
  std::vector<MappedFile> known;
  known.reserve(built_.size());
  for (const auto& [file, built] : built_) known.push_back(file);
  const auto found = users_.find(user);
  if (found == users_.end()) return known;
  forget_refusals(found->second, user == 0);
  for (const auto& [file, entry] : found->second.files)
    if (!entry.tables && !built_.contains(file)) known.push_back(file);
  return known;
}

/// Makes room for one more file, first at the user's own expense. False if he has no share left, or all are in use.
bool TablesCache::make_room(const MappedFile& file, std::size_t bytes, std::uint32_t user) {
  User& own = users_[user];
  const auto has_share = [&] {
    return user == 0 || (own.bytes + bytes <= max_bytes_of_user && own.files.size() < max_files_of_user);
  };
  const auto is_full = [&] {
    return bytes_ + (built_.contains(file) ? 0 : bytes) > max_bytes || entries_ >= max_files;
  };
  if (!has_share() || is_full()) forget_unused(own);
  if (!has_share()) return false;
  if (!is_full()) return true;
  for (auto& [id, other] : users_) forget_unused(other);
  std::erase_if(users_, [&](const auto& known) { return known.first != user && known.second.files.empty(); });
  return !is_full();
}

/// Forgets tables of files that none of the user's processes runs any more. If there are too many files, also those
/// without tables.
void TablesCache::forget_unused(User& user) {
  const bool is_crowded = user.files.size() >= max_files_of_user || entries_ >= max_files;
  entries_ -= std::erase_if(user.files, [&](const auto& known) {
    const auto& [file, entry] = known;
    if (!entry.tables) return is_crowded;
    if (entry.is_used()) return false;
    const std::size_t bytes = entry.tables->bytes();
    user.bytes -= bytes;
    const auto built = built_.find(file);
    if (--built->second.users == 0) {
      built_.erase(built);
      bytes_ -= bytes;
    }
    return true;
  });
}

/// Forgets that tables were refused for which there would be room by now.
void TablesCache::forget_refusals(User& user, bool is_root) {
  std::size_t in_use = 0;
  for (const auto& [file, entry] : user.files)
    if (entry.is_used()) in_use += entry.tables->bytes();
  entries_ -= std::erase_if(user.files, [&](const auto& known) {
    const std::size_t bytes = known.second.refused_bytes;
    return bytes != 0 && (is_root || in_use + bytes <= max_bytes_of_user) && bytes_ + bytes <= max_bytes;
  });
}

}  // namespace rtev
