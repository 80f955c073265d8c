// SPDX-License-Identifier: MIT
#include "base/name_globs.hpp"

#include <fnmatch.h>

#include <algorithm>

namespace rtev {

bool matches_name(const std::string& glob, const std::string& comm) {
  return ::fnmatch(glob.c_str(), comm.c_str(), 0) == 0;
}

bool selects_name(const std::vector<std::string>& globs, const std::string& comm) {
  return globs.empty() || std::ranges::any_of(globs, [&](const std::string& glob) { return matches_name(glob, comm); });
}

}  // namespace rtev
