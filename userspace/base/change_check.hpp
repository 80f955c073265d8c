// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>

namespace rtev {

enum class FileUse : std::uint8_t {
  read,
  map,  ///< or unmap
};

/// True while a system call writes or cuts an open file (fallocate(2), ftruncate(2)), or, with FileUse::map, visits all
/// mappings of it. Whoever uses the file meanwhile can wait until the call returns: seconds, if it frees a gigabyte in
/// many pieces.
using ChangeCheck = std::function<bool(int fd, FileUse use)>;

}  // namespace rtev
