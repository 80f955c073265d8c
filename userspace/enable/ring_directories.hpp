// SPDX-License-Identifier: MIT
// Directories whose paths a running program has in its memory: its runtime can be led there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "enable/target.hpp"

namespace rtev::enable {

struct RingDirectory {
  std::string path{};      ///< absolute; may hold any bytes
  std::uint64_t text = 0;  ///< its address in the process, with a zero behind it
};

/// Those of the variables that the program was started with, HOME first.
std::vector<RingDirectory> ring_directories(const Target& target);

}  // namespace rtev::enable
