// SPDX-License-Identifier: MIT
#include "session/command/sudo_user.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "base/escape.hpp"
#include "base/parse.hpp"

namespace rtev {
namespace {

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : std::string_view{};
}

/// The number of a user or a group in a variable.
std::optional<std::uint32_t> id_in(const char* name) {
  const auto id = parse_number<std::uint32_t>(variable(name));
  return id && *id != UINT32_MAX ? id : std::nullopt;  // which is no id for the kernel
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// System calls, because the functions of the C library of these names change all threads.
bool set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

/// Both calls return the number before, also on failure; a second call returns what there is now.
bool set_file_user(uid_t uid) {
  ::syscall(SYS_setfsuid, uid);
  return static_cast<uid_t>(::syscall(SYS_setfsuid, uid)) == uid;
}
bool set_file_group(gid_t gid) {
  ::syscall(SYS_setfsgid, gid);
  return static_cast<gid_t>(::syscall(SYS_setfsgid, gid)) == gid;
}

}  // namespace

std::optional<SudoUser> SudoUser::of_environment() {
  const auto uid = id_in("SUDO_UID"), gid = id_in("SUDO_GID");
  if (::geteuid() != 0 || !uid || !gid || *uid == 0) return std::nullopt;
  SudoUser user{.uid = *uid, .gid = *gid, .name = std::string(variable("SUDO_USER")), .home = {}, .groups = {*gid}};
  // The files and not getpwuid(): a static binary cannot load the libraries of the name service. Users who are only
  // known there (LDAP) keep the name sudo gave them, have no home and only the groups of /etc/group.
  if (const File passwd{std::fopen("/etc/passwd", "re")}) {
    while (const ::passwd* entry = ::fgetpwent(passwd.get())) {
      if (entry->pw_uid != user.uid) continue;
      user.name = entry->pw_name;
      user.home = entry->pw_dir;
      break;
    }
  }
  if (const File groups{std::fopen("/etc/group", "re")}; groups && !user.name.empty()) {
    while (const ::group* entry = ::fgetgrent(groups.get())) {
      for (char** member = entry->gr_mem; *member != nullptr; ++member) {
        if (user.name == *member && entry->gr_gid != user.gid) user.groups.push_back(entry->gr_gid);
      }
    }
  }
  return user;
}

bool SudoUser::become() const {
  if (::setgroups(groups.size(), groups.data()) != 0 || ::setgid(gid) != 0 || ::setuid(uid) != 0) return false;
  if (!name.empty()) {
    ::setenv("USER", name.c_str(), 1);
    ::setenv("LOGNAME", name.c_str(), 1);
  }
  // Not root's home, which the user may not enter.
  if (home.empty()) {
    ::unsetenv("HOME");
  } else {
    ::setenv("HOME", home.c_str(), 1);
  }
  return true;
}

Result<void> check_sudo_environment() {
  constexpr std::array names{"SUDO_UID", "SUDO_GID"};
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  if (::geteuid() != 0 || std::ranges::none_of(names, is_set)) return {};
  const auto wrong = std::ranges::find_if(names, [](const char* name) { return !id_in(name); });
  if (wrong == names.end()) return {};
  return std::unexpected(
      Error{.what = "cannot find out who called sudo from",
            .subject = *wrong,
            .why = is_set(*wrong) ? "its value '" + escaped(variable(*wrong)) + "' is no id" : "it is not set",
            .hint = "start rtev-bpf with sudo, which sets SUDO_UID and SUDO_GID; unset both to run as root"});
}

uid_t calling_user() {
  const auto user = SudoUser::of_environment();
  return user ? user->uid : ::geteuid();
}

Result<void> become_calling_user() {
  const auto user = SudoUser::of_environment();
  if (!user || user->become()) return {};
  return errno_error(errno, "cannot give up the rights of root and become", user->name);
}

std::string name_of_user(uid_t uid) {
  if (const File passwd{std::fopen("/etc/passwd", "re")}) {
    while (const ::passwd* entry = ::fgetpwent(passwd.get()))
      if (entry->pw_uid == uid) return entry->pw_name;
  }
  return "user " + std::to_string(uid);
}

Result<FileRights> FileRights::of(const std::optional<SudoUser>& user) {
  FileRights rights;
  if (!user) return rights;
  rights.uid_ = ::geteuid();
  rights.gid_ = ::getegid();
  rights.groups_.resize(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  if (::getgroups(static_cast<int>(rights.groups_.size()), rights.groups_.data()) < 0)
    return errno_error(errno, "cannot read the groups of this process");
  rights.changed_ = true;
  // The user last: without root's number the capabilities over files are gone.
  if (!set_groups(user->groups) || !set_file_group(user->gid) || !set_file_user(user->uid)) {
    return std::unexpected(Error{.what = "cannot access files with the rights of",
                                 .subject = user->name,
                                 .why = "the capabilities CAP_SETUID and CAP_SETGID are missing"});
  }
  return rights;
}

FileRights::FileRights(FileRights&& other) noexcept
    : changed_(std::exchange(other.changed_, false)),
      uid_(other.uid_),
      gid_(other.gid_),
      groups_(std::move(other.groups_)) {}

FileRights::~FileRights() {
  // Work with the wrong rights must not go on.
  if (changed_ && !(set_file_user(uid_) && set_file_group(gid_) && set_groups(groups_))) std::abort();
}

}  // namespace rtev
