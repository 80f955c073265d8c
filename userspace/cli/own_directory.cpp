// SPDX-License-Identifier: MIT
#include "cli/own_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/escape.hpp"
#include "cli/user_file.hpp"
#include "session/command/sudo_user.hpp"

namespace rtev::cli {
namespace {

constexpr FileUse using_directory{O_RDONLY, "cannot use the directory", "give another directory",
                                  "give another directory"};
/// Of the directory, and of those above it that are missing.
constexpr mode_t own_directory_mode = 0700, parent_mode = 0755;

/// The first directory in a variable of systemd.
std::string directory_in(const char* variable) {
  const char* const text = std::getenv(variable);
  const std::string_view all = text != nullptr ? text : "";
  const std::string_view first = all.substr(0, all.find(':'));
  return first.starts_with('/') ? std::string(first) : std::string();
}

}  // namespace

Result<UniqueFd> open_own_directory(const std::string& path) {
  const auto rights = FileRights::of_caller();
  if (!rights) return std::unexpected(rights.error());
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  std::filesystem::path so_far;
  UniqueFd directory;
  for (const auto& part : whole) {
    so_far /= part;
    if (part.empty() || part == "/") continue;
    const mode_t mode = so_far == whole ? own_directory_mode : parent_mode;
    auto place = resolve_path(so_far.string(), calling_user(), using_directory);
    if (!place) return std::unexpected(std::move(place.error()));
    const char* const name = place->name.c_str();
    if (!place->file && ::mkdirat(place->directory.get(), name, mode) != 0 && errno != EEXIST)
      return errno_error(errno, "cannot make the directory", so_far.string(), using_directory.hint);
    directory.reset(::openat(place->directory.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  struct stat status{};
  if (!directory || ::fstat(directory.get(), &status) != 0)
    return errno_error(errno, using_directory.what, path, using_directory.hint);
  constexpr mode_t others_write = 022;
  if (status.st_uid != calling_user() || (status.st_mode & others_write) != 0) {
    const bool is_own = status.st_uid == calling_user();
    return std::unexpected(
        Error{.what = using_directory.what,
              .subject = path,
              .why = is_own ? "other users may write it" : "it belongs to " + escaped(name_of_user(status.st_uid)),
              .hint = "give a directory of your own, or one that does not exist yet"});
  }
  return directory;
}

std::string default_dump_directory() {
  if (std::string state = directory_in("STATE_DIRECTORY"); !state.empty()) return state;
  if (calling_user() == 0) return "/var/lib/rtev-bpf";
  std::string home;
  if (const auto user = SudoUser::of_environment()) {
    home = user->home;
  } else if (const char* const own = std::getenv("HOME"); own != nullptr) {
    home = own;
  }
  return home.empty() ? "rtev-dumps" : home + "/.local/state/rtev-bpf";
}

std::string runtime_directory() {
  constexpr const char* recorders = "/recorders";
  if (const std::string runtime = directory_in("RUNTIME_DIRECTORY"); !runtime.empty()) return runtime + recorders;
  const uid_t user = calling_user();
  return (user == 0 ? std::string("/run/rtev-bpf") : fmt::format("/run/user/{}/rtev-bpf", user)) + recorders;
}

}  // namespace rtev::cli
