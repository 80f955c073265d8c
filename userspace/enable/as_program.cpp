// SPDX-License-Identifier: MIT
#include "enable/as_program.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/capabilities.hpp"

namespace rtev::enable {
namespace {

constexpr int child_timeout_ms = 1000;

bool is_own_user_namespace(std::int32_t pid) {
  struct stat own{}, others{};
  return ::stat("/proc/self/ns/user", &own) == 0 &&
         ::stat(("/proc/" + std::to_string(pid) + "/ns/user").c_str(), &others) == 0 && own.st_ino == others.st_ino;
}

}  // namespace

bool run_in_child(std::span<std::byte> result, const std::function<void()>& work) {
  std::array<int, 2> pipe{-1, -1};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return false;
  const UniqueFd from(pipe[0]);
  UniqueFd to(pipe[1]);
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    // Whoever waits for the end of these must not wait for a child that hangs.
    const int answer = ::dup2(to.get(), STDIN_FILENO);
    ::close_range(STDERR_FILENO + 1, ~0u, 0);
    work();
    [[maybe_unused]] const ssize_t put = ::write(answer, result.data(), result.size());
    ::_exit(0);
  }
  to.reset();
  pollfd answered{.fd = from.get(), .events = POLLIN, .revents = 0};
  const bool is_answered = ::poll(&answered, 1, child_timeout_ms) == 1 &&
                           ::read(from.get(), result.data(), result.size()) == static_cast<ssize_t>(result.size());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, WNOHANG);  // SIGCHLD is ignored: the kernel forgets it
  return is_answered;
}

UniqueFd open_directory(std::int32_t pid, const std::string& path) {
  const std::string process = "/proc/" + std::to_string(pid);
  const bool is_absolute = path.starts_with('/');
  UniqueFd start(::open((process + (is_absolute ? "/root" : "/cwd")).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!start || path.empty()) return start;
  // Links in a relative path could lead to this process's root instead.
  open_how how{.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
               .mode = 0,
               .resolve = is_absolute ? std::uint64_t{RESOLVE_IN_ROOT} : std::uint64_t{RESOLVE_NO_SYMLINKS}};
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, start.get(), path.c_str(), &how, sizeof how)));
}

bool become(const ProcessStatus& status, std::int32_t pid) {
  // The rights of files do not count for it.
  if ((status.capabilities >> CAP_DAC_OVERRIDE & 1) != 0 && is_own_user_namespace(pid)) return true;
  const bool has_ids = ::setgroups(status.groups.size(), status.groups.data()) == 0 &&
                       ::setresgid(status.group, status.group, status.group) == 0 &&
                       ::setresuid(status.user, status.user, status.user) == 0;
  return has_ids && keep_capabilities({});
}

}  // namespace rtev::enable
