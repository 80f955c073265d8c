// SPDX-License-Identifier: MIT
#include "enable/safe_path.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ranges>
#include <utility>
#include <vector>

namespace rtev::enable {
namespace {

/// As many links as the kernel follows.
constexpr int max_links = 40;

std::unexpected<Obstacle> failed(int code) {
  return std::unexpected(Obstacle{.code = code});
}

bool is_trusted(uid_t owner, const Credentials& credentials) {
  return owner == 0 || owner == credentials.user || owner == credentials.namespace_root;
}

std::unexpected<Obstacle> belongs_to(uid_t owner, const char* what) {
  return std::unexpected(Obstacle{.insecure = std::string(what) + " belongs to user " + std::to_string(owner)});
}

/// Adds the components of a path to what is left to open: the next one is the last.
void push(std::vector<std::string>& left, std::string_view path) {
  std::vector<std::string> components;
  for (const auto part : std::views::split(path, '/'))
    if (const std::string_view name(part.begin(), part.end()); !name.empty() && name != ".")
      components.emplace_back(name);
  left.insert(left.end(), components.rbegin(), components.rend());
}

}  // namespace

std::expected<void, Obstacle> SafePath::check(const UniqueFd& directory) const {
  struct stat status{};
  if (!may_answer(directory)) return failed(unsafe_file_system);
  if (::fstat(directory.get(), &status) != 0) return failed(errno);
  if (!S_ISDIR(status.st_mode)) return failed(ENOTDIR);
  if (!is_trusted(status.st_uid, credentials_))
    return belongs_to(status.st_uid, "a directory on the way to it, or itself,");
  constexpr mode_t of_others = S_IWGRP | S_IWOTH;
  if ((status.st_mode & of_others) != 0 && (status.st_mode & S_ISVTX) == 0)
    return std::unexpected(Obstacle{.insecure = "its group or others may write to it or to a directory on the way"});
  return {};
}

int SafeDirectory::obstacle() const {
  for (const UniqueFd& directory : opened_)
    if (::syscall(SYS_faccessat2, directory.get(), "", X_OK, AT_EACCESS | AT_EMPTY_PATH) != 0) return errno;
  return 0;
}

bool SafeDirectory::is_in_file_system_of(uid_t user) const {
  struct stat last{}, status{};
  if (::fstat(fd(), &last) != 0) return false;
  const auto first = std::ranges::find_if(opened_, [&](const UniqueFd& directory) {
    return ::fstat(directory.get(), &status) == 0 && status.st_dev == last.st_dev;
  });
  return first != opened_.end() && status.st_uid == user && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

std::expected<SafeDirectory, Obstacle> SafePath::open(const UniqueFd& root, std::string_view path) const {
  SafeDirectory found;
  std::vector<UniqueFd>& opened = found.opened_;
  opened.emplace_back(::fcntl(root.get(), F_DUPFD_CLOEXEC, 0));
  if (!opened.back()) return failed(errno);
  if (auto is_safe = check(opened.back()); !is_safe) return std::unexpected(std::move(is_safe.error()));
  // The directories from the beginning to the present one, so that ".." is the one that was checked.
  std::vector<std::size_t> way{0};
  std::vector<std::string> left;
  push(left, path);
  for (int links = 0; !left.empty();) {
    const std::string name = std::move(left.back());
    left.pop_back();
    if (name == "..") {
      if (way.size() > 1) way.pop_back();
      continue;
    }
    UniqueFd next(::openat(opened[way.back()].get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return failed(errno);
    if (!may_answer(next)) return failed(unsafe_file_system);
    struct stat status{};
    if (::fstat(next.get(), &status) != 0) return failed(errno);
    if (!S_ISLNK(status.st_mode)) {
      if (auto is_safe = check(next); !is_safe) return std::unexpected(std::move(is_safe.error()));
      way.push_back(opened.size());
      opened.push_back(std::move(next));
      continue;
    }
    if (!is_trusted(status.st_uid, credentials_)) return belongs_to(status.st_uid, "a link on the way to it");
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(next.get(), "", target.data(), target.size());
    if (length <= 0 || ++links > max_links) return failed(length < 0 ? errno : ELOOP);
    const std::string_view text(target.data(), static_cast<std::size_t>(length));
    if (text.starts_with('/')) way.resize(1);
    push(left, text);
  }
  found.last_ = way.back();
  return found;
}

}  // namespace rtev::enable
