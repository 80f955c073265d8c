// SPDX-License-Identifier: MIT
#include "base/state_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace rtev {

namespace {

UniqueFd open_directory(const std::filesystem::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Earlier versions let others look into it.
void close_state_root() {
  constexpr const char* root = "/run/rtev-bpf";
  struct stat status{};
  const UniqueFd fd = open_directory(root);
  if (fd && ::fstat(fd.get(), &status) == 0 && status.st_uid == ::geteuid() &&
      (status.st_mode & ALLPERMS & ~S_IRWXU) != 0)
    ::fchmod(fd.get(), status.st_mode & S_IRWXU);
}

}  // namespace

Result<UniqueFd> open_state_directory(const std::filesystem::path& directory) {
  const std::string hint = ::geteuid() != 0 ? "run it as root" : "";
  UniqueFd fd = open_directory(directory);
  // Who locks /run has mkdir(2) wait also for a directory that is there.
  if (!fd && errno == ENOENT) {
    std::error_code ignored;  // of /run, which a small system may lack: said below
    std::filesystem::create_directories(directory.parent_path().parent_path(), ignored);
    // Never wider, not even for a moment: a descriptor from then could still be read.
    for (const std::filesystem::path& made : {directory.parent_path(), directory})
      if (::mkdir(made.c_str(), S_IRWXU) != 0 && errno != EEXIST)
        return errno_error(errno, "cannot make directory", made, hint);
    fd = open_directory(directory);
  }
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) return errno_error(errno, "cannot open directory", directory);
  constexpr mode_t of_others = S_IWGRP | S_IWOTH;
  if (status.st_uid != ::geteuid() || (status.st_mode & of_others) != 0)
    return std::unexpected(Error{.what = "cannot keep a record of what was changed",
                                 .subject = directory,
                                 .why = ::geteuid() != 0 ? "it belongs to root" : "others than root may write there",
                                 .hint = hint});
  if ((status.st_mode & ALLPERMS & ~S_IRWXU) != 0 && ::fchmod(fd.get(), status.st_mode & S_IRWXU) != 0)
    return errno_error(errno, "cannot change the mode of directory", directory);
  close_state_root();
  return fd;
}

std::string state_file_name(std::int32_t pid, std::uint64_t start_ticks) {
  return fmt::format("{}-{}", pid, start_ticks);
}

}  // namespace rtev
