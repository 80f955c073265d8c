// SPDX-License-Identifier: MIT
#include "base/name_globs.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <string_view>

namespace rtev {
namespace {

bool matches(std::string_view glob, std::string_view name) {
  return ::fnmatch(std::string(glob).c_str(), std::string(name).c_str(), 0) == 0;
}

/// "one/two" in the path of directories "/home/one/a/two/b".
bool has_directories(std::string_view globs, std::string_view path) {
  while (!globs.empty()) {
    const std::size_t slash = globs.rfind('/');
    const std::string_view glob = globs.substr(slash + 1);
    globs = globs.substr(0, slash == std::string_view::npos ? 0 : slash);
    bool has = false;
    while (!has && !path.empty()) {
      has = matches(glob, file_name_of(path));
      path = path.substr(0, path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/'));
    }
    if (!has) return false;
  }
  return true;
}

bool matches_any(std::string_view glob, const ProgramNames& names) {
  return matches(glob, names.comm) || (!names.exe.empty() && matches(glob, file_name_of(names.exe))) ||
         (!names.script.empty() && matches(glob, file_name_of(names.script)));
}

}  // namespace

bool matches_name(const std::string& glob, const ProgramNames& names) {
  if (matches_any(glob, names)) return true;
  const std::size_t slash = glob.rfind('/');
  if (slash == std::string::npos) return false;
  const std::string_view path = path_of(names), last = std::string_view(glob).substr(slash + 1);
  if (glob.starts_with('/')) return matches(glob, path) || matches(glob, names.exe);
  if (path.empty() || !matches_any(last, names)) return false;
  // A program that has given itself a name may be told from others by its file.
  const bool by_file = matches(last, file_name_of(path));
  const std::string_view above = by_file ? path.substr(0, path.size() - file_name_of(path).size()) : path;
  return has_directories(std::string_view(glob).substr(0, slash),
                         above.ends_with('/') ? above.substr(0, above.size() - 1) : above);
}

bool selects_name(const std::vector<std::string>& globs, const ProgramNames& names) {
  return globs.empty() ||
         std::ranges::any_of(globs, [&](const std::string& glob) { return matches_name(glob, names); });
}

bool may_select_name(const std::vector<std::string>& globs, const ProgramNames& names) {
  return names.exe.empty() || (names.script.empty() && runs_another_file(names.exe)) || selects_name(globs, names);
}

}  // namespace rtev
