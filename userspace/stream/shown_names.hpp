// SPDX-License-Identifier: MIT
// Names of processes as people are shown them: long enough to tell programs apart.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/program_names.hpp"

namespace rtev {

class ShownNames {
 public:
  /// Longer names are cut, or one program could make all tables too wide to read.
  static constexpr std::size_t max_bytes = 64;

  /// Notes a program. True if there is another one of its name, whose processes are called differently from now on.
  bool add(const ProgramNames& names);
  /// The full name, with directories before it if programs in several places are called so.
  std::string name_of(const ProgramNames& names) const;

 private:
  /// Programs are made at will: what is beyond is not told apart.
  static constexpr std::size_t max_names = 4096, max_paths = 16;

  std::map<std::string, std::vector<std::string>, std::less<>> paths_;  ///< by full name
};

}  // namespace rtev
