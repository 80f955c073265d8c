// SPDX-License-Identifier: MIT
#include "cli/user_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/escape.hpp"
#include "base/parse.hpp"
#include "base/proc_files.hpp"
#include "session/command/sudo_user.hpp"

namespace rtev::cli {
namespace {

constexpr int max_links = 40;  // as the kernel has it

/// The parts of a path that are still to be followed, the next one last.
using Parts = std::vector<std::string>;

void add_parts(std::string_view path, Parts& parts) {
  while (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    const std::string_view part = slash == std::string_view::npos ? path : path.substr(slash + 1);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
  }
}

UniqueFd start_of(std::string_view path) {
  return UniqueFd(::open(path.starts_with('/') ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

std::string target_of(const UniqueFd& link) {
  std::array<char, PATH_MAX> text;
  const ssize_t size = ::readlinkat(link.get(), "", text.data(), text.size());
  return size < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(size));
}

/// Links there lead to open files, not to paths, and only the kernel makes them.
bool is_in_proc(const UniqueFd& file) {
  struct statfs system{};
  return ::fstatfs(file.get(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

std::unexpected<Error> failed(int code, const std::string& path, const FileUse& use) {
  const bool is_forbidden = code == EACCES && use.access == O_RDONLY;
  return errno_error(code, use.what, path, is_forbidden ? "let this user read it, or run as a user who may" : use.hint);
}

std::unexpected<Error> refused(std::string why, const char* hint, const std::string& path, const FileUse& use) {
  return std::unexpected(Error{.what = use.what, .subject = path, .why = std::move(why), .hint = hint});
}

bool is_harmless_device(const struct stat& status, uid_t user) {
  constexpr unsigned memory = 1, consoles = 4, terminals = 5, first_pty = 136, last_pty = 143;
  const unsigned kind = major(status.st_rdev), number = minor(status.st_rdev);
  if (kind == memory) return number == 3 || number == 5 || number == 7;  // null, zero, full
  if (kind == terminals && number == 0) return true;                     // /dev/tty: the caller's own
  return status.st_uid == user && (kind == consoles || (kind >= first_pty && kind <= last_pty));
}

Result<void> check(const struct stat& status, const std::string& path, uid_t user, const FileUse& use) {
  const bool is_regular = S_ISREG(status.st_mode), is_written = use.access != O_RDONLY;
  if (S_ISDIR(status.st_mode)) return failed(EISDIR, path, use);
  if (S_ISCHR(status.st_mode) && is_harmless_device(status, user)) return {};
  if (!is_regular && !S_ISFIFO(status.st_mode)) return refused("it is a device or a socket", use.hint, path, use);
  if (status.st_uid != user && (is_written || !is_regular)) {
    return refused(fmt::format("it belongs to another user, {}, who could {}", escaped(name_of_user(status.st_uid)),
                               is_written ? "read the trace" : "make its reader wait for ever"),
                   use.trap_hint, path, use);
  }
  // Another user may have added this name to a private file.
  if (is_regular && status.st_nlink > 1)
    return refused(fmt::format("the file has {} names (hard links)", status.st_nlink), use.trap_hint, path, use);
  return {};
}

}  // namespace

Result<ResolvedPath> resolve_path(const std::string& path, uid_t user, const FileUse& use) {
  Parts parts;
  add_parts(path, parts);
  if (parts.empty() || path.ends_with('/')) return failed(path.empty() ? ENOENT : EISDIR, path, use);
  UniqueFd directory = start_of(path);
  for (int links = 0; directory;) {
    const std::string name = std::move(parts.back());
    parts.pop_back();
    UniqueFd next(::openat(directory.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next && errno == ENOENT && parts.empty()) return ResolvedPath{std::move(directory), name, {}};
    struct stat status{};
    if (!next || ::fstat(next.get(), &status) != 0) return failed(errno, path, use);
    if (S_ISLNK(status.st_mode) && is_in_proc(next)) {
      next.reset(::openat(directory.get(), name.c_str(), O_PATH | O_CLOEXEC));
      if (!next) return failed(errno, path, use);
    } else if (S_ISLNK(status.st_mode)) {
      if (++links > max_links) return failed(ELOOP, path, use);
      if (status.st_uid != 0 && status.st_uid != user) {
        return refused(fmt::format("'{}' is a symbolic link of {}, and may lead to any file", escaped(name),
                                   escaped(name_of_user(status.st_uid))),
                       use.trap_hint, path, use);
      }
      const std::string target = target_of(next);
      add_parts(target, parts);
      if (target.starts_with('/')) directory = start_of(target);
      if (parts.empty()) return failed(EISDIR, path, use);
      continue;
    }
    if (parts.empty() && name == "..") return failed(EISDIR, path, use);
    if (parts.empty()) return ResolvedPath{std::move(directory), name, std::move(next)};
    directory = std::move(next);
  }
  return failed(errno, path, use);
}

Result<UniqueFd> open_found(const UniqueFd& found, const std::string& path, uid_t user, const FileUse& use) {
  struct stat status{};
  if (::fstat(found.get(), &status) != 0) return failed(errno, path, use);
  if (auto good = check(status, path, user, use); !good) return std::unexpected(std::move(good.error()));
  UniqueFd fd = open_proc(fmt::format("/proc/self/fd/{}", found.get()), use.access | O_NONBLOCK);
  if (!fd && errno == ENXIO && S_ISFIFO(status.st_mode))
    return refused("it is a fifo from which no program reads", "start the reader first", path, use);
  if (!fd) return failed(errno, path, use);
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return fd;
}

std::optional<int> descriptor_in(std::string_view path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"})
    if (path.starts_with(folder)) return parse_number<int>(path.substr(folder.size()));
  return std::nullopt;
}

Result<UniqueFd> open_inherited(int number, const std::string& path, const FileUse& use) {
  // Descriptors of this program are closed on exec; those that it was started with are not.
  const int closes = ::fcntl(number, F_GETFD);
  if (closes < 0 || (closes & FD_CLOEXEC) != 0) return failed(EBADF, path, use);
  const int flags = ::fcntl(number, F_GETFL);
  const int access = flags & O_ACCMODE;
  if (flags < 0 || (access != O_RDWR && access != use.access)) {
    return refused(fmt::format("it is open for {} only", access == O_RDONLY ? "reading" : "writing"), use.hint, path,
                   use);
  }
  UniqueFd fd(::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!fd) return failed(errno, path, use);
  return fd;
}

}  // namespace rtev::cli
