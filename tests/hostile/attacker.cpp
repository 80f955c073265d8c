// SPDX-License-Identifier: MIT
#include "attacker.hpp"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>

#include <fstream>

namespace rtev::hostile {

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

void become(std::string_view attack, const Directory& dir) {
  become(own_program(), attack, dir);
}

void become(const std::string& program, std::string_view attack, const Directory& dir) {
  ::execl(program.c_str(), "rtev-attack", std::string(attack).c_str(), dir.c_str(), nullptr);
  fail("cannot run " + program);
}

void become_stranger(const Directory& dir) {
  constexpr uid_t nobody = 65534;
  if (::chown(dir.c_str(), nobody, nobody) != 0 || ::setgroups(0, nullptr) != 0 || ::setgid(nobody) != 0 ||
      ::setuid(nobody) != 0)
    fail("cannot become another user");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // forgotten with the change
}

pid_t fork_dependent() {
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
  }
  return child;
}

char state_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  const std::size_t name_end = text.rfind(") ");
  return name_end == std::string::npos ? '?' : text[name_end + 2];
}

int end_all(int status) {
  if (status == 0) ::kill(0, SIGKILL);
  return status;
}

int nothing(const Directory& /*dir*/) {
  return 0;
}

}  // namespace rtev::hostile
