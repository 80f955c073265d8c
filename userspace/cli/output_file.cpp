// SPDX-License-Identifier: MIT
#include "cli/output_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "base/escape.hpp"
#include "base/parse.hpp"
#include "cli/output_path.hpp"
#include "session/command/sudo_user.hpp"

namespace rtev::cli {
namespace {

/// The trace may be of other users' programs.
constexpr mode_t private_mode = 0600;

constexpr const char* other_file_hint = "give another file with -o";

using Opened = Result<std::unique_ptr<FdOutput>>;

std::unexpected<Error> refused(const std::string& path, std::string why,
                               const char* hint = "remove it first, or give another file with -o") {
  return std::unexpected(
      Error{.what = "cannot write to", .subject = path, .why = std::move(why), .hint = std::string(hint)});
}

std::unexpected<Error> failed(const std::string& path, int code) {
  return errno_error(code, "cannot write to", path, other_file_hint);
}

/// True for names of the file that stdout is: writing to it twice would overwrite data.
bool is_stdout(const std::string& path) {
  struct stat named{}, own{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &own) == 0 && named.st_dev == own.st_dev &&
         named.st_ino == own.st_ino && !S_ISCHR(own.st_mode);
}

/// The number in a name of an open descriptor.
std::optional<int> descriptor_in(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"})
    if (path.starts_with(folder)) return parse_number<int>(path.substr(folder.size()));
  return std::nullopt;
}

/// Uses the descriptor as it is. Opening it again would need rights to a file that the caller may only have been given.
Opened inherited(int number, const std::string& path) {
  // Descriptors of this program are closed on exec; those that it was started with are not.
  const int closes = ::fcntl(number, F_GETFD);
  if (closes < 0 || (closes & FD_CLOEXEC) != 0) return failed(path, EBADF);
  const int flags = ::fcntl(number, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
    return refused(path, "it is open for reading only", other_file_hint);
  UniqueFd fd(::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!fd) return failed(path, errno);
  return std::make_unique<FdOutput>(std::move(fd), path);
}

bool is_harmless_device(const struct stat& status, uid_t user) {
  constexpr unsigned memory = 1, consoles = 4, terminals = 5, first_pty = 136, last_pty = 143;
  const unsigned kind = major(status.st_rdev), number = minor(status.st_rdev);
  if (kind == memory) return number == 3 || number == 5 || number == 7;  // null, zero, full
  if (kind == terminals && number == 0) return true;                     // /dev/tty: the caller's own
  return status.st_uid == user && (kind == consoles || (kind >= first_pty && kind <= last_pty));
}

/// Whether a file that is there already may be written.
Result<void> check_existing(const struct stat& status, const std::string& path, uid_t user) {
  if (S_ISDIR(status.st_mode)) return failed(path, EISDIR);
  if (S_ISCHR(status.st_mode) && is_harmless_device(status, user)) return {};
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
    return refused(path, "it is a device or a socket", other_file_hint);
  if (status.st_uid != user)
    return refused(path, fmt::format("it belongs to another user, {}, who could read the trace",
                                     escaped(name_of_user(status.st_uid))));
  // The other name may be that of a file that the user wants to keep.
  if (S_ISREG(status.st_mode) && status.st_nlink > 1)
    return refused(path, fmt::format("the file has {} names (hard links)", status.st_nlink));
  return {};
}

/// Only what was found and checked is opened, even if the path leads elsewhere by now.
Opened open_existing(const UniqueFd& found, const std::string& path, uid_t user) {
  struct stat status{};
  if (::fstat(found.get(), &status) != 0) return failed(path, errno);
  if (auto good = check_existing(status, path, user); !good) return std::unexpected(std::move(good.error()));
  const std::string same = fmt::format("/proc/self/fd/{}", found.get());
  UniqueFd fd(::open(same.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd && errno == ENXIO && S_ISFIFO(status.st_mode))
    return refused(path, "it is a fifo from which no program reads", "start the reader first");
  if (!fd) return failed(path, errno);
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  if (S_ISREG(status.st_mode) && ::fchmod(fd.get(), private_mode) != 0)
    return errno_error(errno, "cannot restrict the permissions of", path, other_file_hint);
  auto output = std::make_unique<FdOutput>(std::move(fd), path);
  output->wait_for_begin();
  return output;
}

/// Removes a file that was created in vain, with the rights of the user: its directory may be anyone's.
void remove_created(const FilePlace& place) {
  const auto rights = FileRights::of_caller();
  struct stat created{}, named{};
  const bool is_same = ::fstat(place.file.get(), &created) == 0 &&
                       ::fstatat(place.directory.get(), place.name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                       created.st_dev == named.st_dev && created.st_ino == named.st_ino;
  if (rights && is_same) ::unlinkat(place.directory.get(), place.name.c_str(), 0);
}

/// Nothing if someone else created the file meanwhile.
Result<std::unique_ptr<FdOutput>> create(FilePlace place, const std::string& path) {
  UniqueFd fd(::openat(place.directory.get(), place.name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                       private_mode));
  if (!fd && errno == EEXIST) return nullptr;
  if (!fd) return failed(path, errno);
  place.file.reset(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  auto output = std::make_unique<FdOutput>(std::move(fd), path);
  output->wait_for_begin([place = std::make_shared<FilePlace>(std::move(place))] { remove_created(*place); });
  return output;
}

Opened find_and_open(const std::string& path) {
  const auto rights = FileRights::of_caller();
  if (!rights) return std::unexpected(rights.error());
  constexpr int attempts = 8;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    auto place = find_place(path, calling_user());
    if (!place) return std::unexpected(std::move(place.error()));
    if (place->file) return open_existing(place->file, path, calling_user());
    auto created = create(std::move(*place), path);
    if (!created || *created) return created;
  }
  return failed(path, EEXIST);
}

}  // namespace

Opened open_output(const std::string& path) {
  if (path.empty() || path == "-" || is_stdout(path)) return std::make_unique<FdOutput>(STDOUT_FILENO, "stdout");
  if (const auto number = descriptor_in(path)) return inherited(*number, path);
  auto output = find_and_open(path);
  if (!output || !(*output)->is_regular_file()) return output;
  // Two writers would overwrite each other's data. The lock is held until the file is closed.
  if (::flock((*output)->fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return errno_error(EBUSY, "cannot write to", path, "another program writes to it: give another file with -o");
  (*output)->spare_page_cache();
  return output;
}

}  // namespace rtev::cli
