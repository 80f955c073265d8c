// SPDX-License-Identifier: MIT
#include "cli/output_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <utility>

#include "cli/user_file.hpp"
#include "session/command/sudo_user.hpp"

namespace rtev::cli {
namespace {

/// The trace may be of other users' programs.
constexpr mode_t private_mode = 0600;

using Opened = Result<std::unique_ptr<FdOutput>>;

/// True for names of the file that stdout is: writing to it twice would overwrite data.
bool is_stdout(const std::string& path) {
  struct stat named{}, own{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &own) == 0 && named.st_dev == own.st_dev &&
         named.st_ino == own.st_ino && !S_ISCHR(own.st_mode);
}

Opened open_existing(const UniqueFd& found, const std::string& path, uid_t user) {
  auto fd = open_found(found, path, user, writing);
  if (!fd) return std::unexpected(std::move(fd.error()));
  auto output = std::make_unique<FdOutput>(std::move(*fd), path);
  output->wait_for_begin();
  return output;
}

/// Removes a file that was created in vain, with the rights of the user: its directory may be anyone's.
void remove_created(const ResolvedPath& place) {
  const auto rights = FileRights::of_caller();
  struct stat created{}, named{};
  const bool is_same = ::fstat(place.file.get(), &created) == 0 &&
                       ::fstatat(place.directory.get(), place.name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                       created.st_dev == named.st_dev && created.st_ino == named.st_ino;
  if (rights && is_same) ::unlinkat(place.directory.get(), place.name.c_str(), 0);
}

/// The file that a signal removes. Signal handlers reach nothing but statics.
std::shared_ptr<const ResolvedPath> created_file;
std::atomic<const ResolvedPath*> unfinished = nullptr;
std::atomic<bool> removes_on_signal = false;

/// Not with more rights than the file was created with: its directory may be anyone's.
void remove_and_end(int number) {
  const ResolvedPath* const place = unfinished;
  struct stat created{}, named{};
  if (place != nullptr && ::fstat(place->file.get(), &created) == 0 && created.st_uid == ::geteuid() &&
      ::fstatat(place->directory.get(), place->name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
      created.st_dev == named.st_dev && created.st_ino == named.st_ino)
    ::unlinkat(place->directory.get(), place->name.c_str(), 0);
  ::signal(number, SIG_DFL);
  ::raise(number);
}

/// Nothing if someone else created the file meanwhile.
Result<std::unique_ptr<FdOutput>> create(ResolvedPath place, const std::string& path) {
  UniqueFd fd(::openat(place.directory.get(), place.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                       private_mode));
  if (!fd && errno == EEXIST) return nullptr;
  if (!fd) return errno_error(errno, writing.what, path, writing.hint);
  place.file.reset(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  auto output = std::make_unique<FdOutput>(std::move(fd), path);
  const auto made = std::make_shared<ResolvedPath>(std::move(place));
  output->wait_for_begin([made] { remove_created(*made); });
  if (removes_on_signal) {
    created_file = made;
    unfinished = made.get();
  }
  return output;
}

Opened find_and_open(const std::string& path) {
  const auto rights = FileRights::of_caller();
  if (!rights) return std::unexpected(rights.error());
  constexpr int attempts = 8;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    auto place = resolve_path(path, calling_user(), writing);
    if (!place) return std::unexpected(std::move(place.error()));
    if (place->file) return open_existing(place->file, path, calling_user());
    auto created = create(std::move(*place), path);
    if (!created || *created) return created;
  }
  return errno_error(EEXIST, writing.what, path, writing.hint);
}

}  // namespace

Opened open_output(const std::string& path) {
  if (path.empty() || path == "-" || is_stdout(path)) return std::make_unique<FdOutput>(STDOUT_FILENO, "stdout");
  if (const auto number = descriptor_in(path)) {
    auto fd = open_inherited(*number, path, writing);
    if (!fd) return std::unexpected(std::move(fd.error()));
    return std::make_unique<FdOutput>(std::move(*fd), path);
  }
  auto output = find_and_open(path);
  if (!output || !(*output)->is_regular_file()) return output;
  // Two writers would overwrite each other's data. The lock is held until the file is closed.
  if (::flock((*output)->fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return errno_error(EBUSY, "cannot write to", path, "another program writes to it: give another file with -o");
  (*output)->spare_page_cache();
  return output;
}

void remove_output_on_signal() {
  removes_on_signal = true;
  struct sigaction action{};
  action.sa_handler = remove_and_end;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      ::sigaction(number, &action, nullptr);
  }
}

}  // namespace rtev::cli
