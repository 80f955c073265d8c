// SPDX-License-Identifier: MIT
// What the attacks share: how they run until they are told to end, and how they run programs.
#pragma once

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>

#include "attacks.hpp"

namespace rtev::hostile {

[[noreturn]] inline void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

inline void say(const char* line) {
  std::puts(line);
  std::fflush(stdout);
}

/// Calls `turn` again and again until stdin is closed or has a line. Says "ready" after the first turn.
template <typename Turn>
int repeat(Turn turn, int pause_ms = 0) {
  pollfd end{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  turn();
  say("ready");
  while (::poll(&end, 1, pause_ms) == 0) turn();
  say("done");
  return 0;
}

/// Runs an attack of this name as the next program of this process.
[[noreturn]] void become(std::string_view attack, const Directory& dir);
/// The same, of another file that holds this program.
[[noreturn]] void become(const std::string& program, std::string_view attack, const Directory& dir);

/// Path of this program.
std::string own_program();

/// Goes on as an unprivileged user, to whom `dir` belongs from now on. Its files in /proc belong to root.
void become_stranger(const Directory& dir);

/// A child that does not outlive this process; 0 in the child.
pid_t fork_dependent();

/// State of a process: 'D' if it waits uninterruptibly. Does not need the process's memory.
char state_of(pid_t pid);

/// Ends this process and its children at once. Where they wait for each other, none would end otherwise.
int end_all(int status);

/// Has one child after the other do `work`, which ends the child.
template <typename Work>
int repeat_in_children(Work work) {
  return repeat([&] {
    const pid_t child = fork_dependent();
    if (child == 0) work();
    ::waitpid(child, nullptr, 0);
  });
}

/// Has this many children do `work` again and again. After become_stranger(): at the end they are killed with all
/// processes of the group that may be.
template <typename Work>
int repeat_beside(int children, Work work) {
  for (int child = 0; child < children; ++child) {
    if (fork_dependent() > 0) continue;
    while (true) work();
  }
  constexpr int pause_ms = 10;
  return end_all(repeat([] {}, pause_ms));
}

}  // namespace rtev::hostile
