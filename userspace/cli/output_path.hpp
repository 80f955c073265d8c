// SPDX-License-Identifier: MIT
// Finds the file of a path without following links that other users made.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev::cli {

/// A place in the file system. Its directory stays the same, whatever others rename meanwhile.
struct FilePlace {
  UniqueFd directory;  ///< O_PATH
  std::string name;    ///< in the directory; not "." or ".."
  UniqueFd file;       ///< O_PATH; none if there is no such file
};

/// Follows symbolic links of root and of `user` only, in each part of the path. A link of another user is an error that
/// names the owner: it could lead to any file that the caller may write. Opens no file, so nothing waits for the other
/// end of a fifo. The rights are those of the calling thread.
Result<FilePlace> find_place(const std::string& path, uid_t user);

}  // namespace rtev::cli
