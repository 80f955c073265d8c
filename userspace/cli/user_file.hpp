// SPDX-License-Identifier: MIT
// Opens files that the user names, and avoids what other users may have put in their place.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev::cli {

/// What a file is opened for.
struct FileUse {
  int access;             ///< O_RDONLY or O_WRONLY
  const char* what;       ///< how errors begin
  const char* hint;       ///< how they end
  const char* trap_hint;  ///< how they end if another user may have put the file there
};

inline constexpr FileUse reading{
    O_RDONLY, "cannot read", "give a recording, a ring file PID.events of an OCaml 5 program, or the id of a process",
    "give another file; if you trust this one, give - and redirect stdin from it"};
inline constexpr FileUse writing{O_WRONLY, "cannot write to", "give another file with -o",
                                 "remove it first, or give another file with -o"};

/// A place in the file system. Its directory stays the same, whatever others rename meanwhile.
struct ResolvedPath {
  UniqueFd directory;  ///< O_PATH
  std::string name;    ///< in the directory; not "." or ".."
  UniqueFd file;       ///< O_PATH; none if there is no such file
};

/// Follows symbolic links of root and of `user` only, in each part of the path. A link of another user is an error that
/// names the owner: it could lead to any file that the caller may read or write. Opens no file, so nothing waits for
/// the other end of a fifo. The rights are those of the calling thread.
Result<ResolvedPath> resolve_path(const std::string& path, uid_t user, const FileUse& use);

/// Opens the file of a place, even if the path leads elsewhere by now; without waiting for the other end of a fifo.
/// Refuses folders, files with several names, sockets, devices except null, zero, full and the terminals of `user`, and
/// what belongs to other users. Regular files of others may be read.
Result<UniqueFd> open_found(const UniqueFd& found, const std::string& path, uid_t user, const FileUse& use);

/// The number in a name of an open descriptor: /dev/fd/N and its like.
std::optional<int> descriptor_in(std::string_view path);

/// Duplicates a descriptor that this program was started with. Opening it again would need rights to a file that the
/// caller may only have been given.
Result<UniqueFd> open_inherited(int number, const std::string& path, const FileUse& use);

}  // namespace rtev::cli
