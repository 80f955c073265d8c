// SPDX-License-Identifier: MIT
#include "stream/program_key.hpp"

#include "base/program_names.hpp"

namespace rtev {

std::string program_key(std::string_view exe, std::string_view comm) {
  std::string key(exe);
  if (!exe.empty() && !runs_another_file(exe)) return key;
  // No path and no name of a process has this character.
  key += '\0';
  key += comm;
  return key;
}

}  // namespace rtev
