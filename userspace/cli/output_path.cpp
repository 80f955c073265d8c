// SPDX-License-Identifier: MIT
#include "cli/output_path.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "base/escape.hpp"
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

std::unexpected<Error> link_of_other(const std::string& path, const std::string& name, uid_t owner) {
  return std::unexpected(Error{.what = "cannot write to",
                               .subject = path,
                               .why = fmt::format("'{}' is a symbolic link of {}, and may lead to any file",
                                                  escaped(name), escaped(name_of_user(owner))),
                               .hint = "remove the link, or give another file with -o"});
}

}  // namespace

Result<FilePlace> find_place(const std::string& path, uid_t user) {
  const auto failed = [&](int code) { return errno_error(code, "cannot write to", path, "give another file with -o"); };
  Parts parts;
  add_parts(path, parts);
  if (parts.empty() || path.ends_with('/')) return failed(path.empty() ? ENOENT : EISDIR);
  UniqueFd directory = start_of(path);
  for (int links = 0; directory;) {
    const std::string name = std::move(parts.back());
    parts.pop_back();
    UniqueFd next(::openat(directory.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next && errno == ENOENT && parts.empty()) return FilePlace{std::move(directory), name, {}};
    struct stat status{};
    if (!next || ::fstat(next.get(), &status) != 0) return failed(errno);
    if (S_ISLNK(status.st_mode) && is_in_proc(next)) {
      next.reset(::openat(directory.get(), name.c_str(), O_PATH | O_CLOEXEC));
      if (!next) return failed(errno);
    } else if (S_ISLNK(status.st_mode)) {
      if (++links > max_links) return failed(ELOOP);
      if (status.st_uid != 0 && status.st_uid != user) return link_of_other(path, name, status.st_uid);
      const std::string target = target_of(next);
      add_parts(target, parts);
      if (target.starts_with('/')) directory = start_of(target);
      if (parts.empty()) return failed(EISDIR);
      continue;
    }
    if (parts.empty() && name == "..") return failed(EISDIR);
    if (parts.empty()) return FilePlace{std::move(directory), name, std::move(next)};
    directory = std::move(next);
  }
  return failed(errno);
}

}  // namespace rtev::cli
