// SPDX-License-Identifier: MIT
#include "session/command/sudo_user.hpp"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/parse.hpp"

namespace rtev {
namespace {

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : std::string_view{};
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

std::optional<SudoUser> SudoUser::of_environment() {
  const auto uid = parse_number<uid_t>(variable("SUDO_UID"));
  const auto gid = parse_number<gid_t>(variable("SUDO_GID"));
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

}  // namespace rtev
