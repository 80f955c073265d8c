// SPDX-License-Identifier: MIT
#include "base/proc_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <memory>

namespace rtev {
namespace {

constexpr std::string_view proc_prefix = "/proc/";

std::string target_at(int directory, const char* name) {
  std::array<char, PATH_MAX + 1> target;
  const ssize_t size = ::readlinkat(directory, name, target.data(), target.size());
  return size < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(size));
}

int make_own_proc() {
  const UniqueFd context(static_cast<int>(::syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC)));
  if (!context || ::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return -1;
  constexpr unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  UniqueFd root(static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, attributes)));
  // /proc may be of another pid namespace, in which other processes have these numbers.
  const bool is_same = root && target_at(root.get(), "self") == target_at(AT_FDCWD, "/proc/self");
  return is_same ? root.release() : -1;
}

}  // namespace

int own_proc() {
  static const int root = make_own_proc();
  return root;
}

ProcPlace proc_place(const std::string& path) {
  if (path == "/proc" && own_proc() >= 0) return {.directory = own_proc(), .name = "."};
  if (path.starts_with(proc_prefix) && own_proc() >= 0)
    return {.directory = own_proc(), .name = path.c_str() + proc_prefix.size()};
  return {.directory = AT_FDCWD, .name = path.c_str()};
}

UniqueFd open_proc(const std::filesystem::path& path, int flags) {
  const auto [directory, name] = proc_place(path.native());
  return UniqueFd(::openat(directory, name, flags | O_CLOEXEC | O_NOCTTY));
}

std::string link_target(const std::filesystem::path& link) {
  const auto [directory, name] = proc_place(link.native());
  return target_at(directory, name);
}

void visit_names(UniqueFd directory, const std::function<bool(std::string_view name)>& visit) {
  struct Close {
    void operator()(DIR* opened) const { ::closedir(opened); }
  };
  const std::unique_ptr<DIR, Close> opened(directory ? ::fdopendir(directory.get()) : nullptr);
  if (!opened) return;
  directory.release();
  while (const dirent* const entry = ::readdir(opened.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !visit(name)) return;
  }
}

void visit_names(const std::filesystem::path& directory, const std::function<bool(std::string_view name)>& visit) {
  visit_names(open_proc(directory, O_RDONLY | O_DIRECTORY), visit);
}

}  // namespace rtev
