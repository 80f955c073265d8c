// SPDX-License-Identifier: MIT
#include "stream/shown_names.hpp"

#include <algorithm>

namespace rtev {

bool ShownNames::add(const ProgramNames& names) {
  const std::string_view path = path_of(names);
  if (path.empty()) return false;
  auto known = paths_.find(full_name(names));
  if (known == paths_.end()) {
    if (paths_.size() < max_names) paths_[std::string(full_name(names))].emplace_back(path);
    return false;
  }
  auto& paths = known->second;
  if (paths.size() >= max_paths || std::ranges::find(paths, path) != paths.end()) return false;
  paths.emplace_back(path);
  return true;
}

std::string ShownNames::name_of(const ProgramNames& names) const {
  const std::string_view name = full_name(names), path = path_of(names);
  const auto known = paths_.find(name);
  std::string shown(name);
  if (known != paths_.end() && known->second.size() > 1 && !path.empty()) {
    std::vector<std::string> others = known->second;
    std::erase(others, path);
    shown = distinct_name(name, path, others);
  }
  return shown.substr(0, max_bytes);
}

}  // namespace rtev
