// SPDX-License-Identifier: MIT
#include "session/command/program_runner.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/escape.hpp"
#include "session/command/command.hpp"
#include "session/command/sudo_user.hpp"

namespace rtev {
namespace {

constexpr int timeout_ms = 60'000;
constexpr std::size_t max_message = std::size_t{16} << 10;
/// Room for the messages that wait: some ten.
constexpr int waiting_bytes = 64 << 10;

void complain(const std::string& program, std::string_view why) {
  const std::string line = printable_message(fmt::format("rtev-bpf: {} (--exec) {}\n", escaped(program), why));
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, line.data(), line.size());
}

/// "argument\0NAME=VALUE\0NAME=VALUE\0".
[[noreturn]] void execute(const std::string& program, char* message, std::size_t size) {
  ::setpgid(0, 0);
  for (std::size_t at = std::strlen(message) + 1; at < size; at += std::strlen(message + at) + 1)
    ::putenv(message + at);
  std::string name = program;
  const std::array<char*, 3> arguments{name.data(), message, nullptr};
  ::execvp(name.c_str(), arguments.data());
  ::_exit(Command::not_found);
}

void run_once(const std::string& program, char* message, std::size_t size) {
  const pid_t pid = ::fork();
  if (pid < 0) return complain(program, "cannot be started");
  if (pid == 0) execute(program, message, size);
  ::setpgid(pid, pid);
  const UniqueFd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd wait{.fd = ended.get(), .events = POLLIN, .revents = 0};
  int ready = -1;
  do {
    ready = ::poll(&wait, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  const bool is_late = ready == 0;
  if (is_late) ::kill(-pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (is_late) {
    complain(program, "took longer than 60 s and was killed");
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == Command::not_found) {
    complain(program, "was not found, or cannot be run");
  } else if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    complain(program, fmt::format("failed with exit status {}", WEXITSTATUS(status)));
  } else if (WIFSIGNALED(status)) {
    complain(program, fmt::format("was killed by signal {}", WTERMSIG(status)));
  }
}

[[noreturn]] void serve(int channel, const std::string& program) {
  ::setsid();  // what the terminal sends to the tracer is not for it
  ::prctl(PR_SET_NAME, "rtev-runner");
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2}) ::signal(number, SIG_DFL);
  if (const auto user = SudoUser::of_environment(); user && !user->become()) ::_exit(EXIT_FAILURE);
  // Standard input and output may be the tracer's data. A program without them may misbehave.
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::close(STDIN_FILENO);
  if (channel != STDERR_FILENO + 1) ::dup3(channel, STDERR_FILENO + 1, O_CLOEXEC);
  ::close_range(STDERR_FILENO + 2, ~0U, 0);
  if (::open("/dev/null", O_RDONLY) != STDIN_FILENO) ::_exit(EXIT_FAILURE);
  std::vector<char> message(max_message + 1);
  while (true) {
    const ssize_t size = ::recv(STDERR_FILENO + 1, message.data(), max_message, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) ::_exit(EXIT_SUCCESS);
    message[static_cast<std::size_t>(size)] = '\0';
    run_once(program, message.data(), static_cast<std::size_t>(size));
  }
}

}  // namespace

Result<ProgramRunner> ProgramRunner::start(const std::string& program) {
  if (auto exists = Command::check(program); !exists) return std::unexpected(std::move(exists.error()));
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return errno_error(errno, "cannot prepare to run", program);
  UniqueFd ours(ends[0]), theirs(ends[1]);
  ::setsockopt(ours.get(), SOL_SOCKET, SO_SNDBUF, &waiting_bytes, sizeof waiting_bytes);
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(errno, "cannot prepare to run", program);
  if (pid == 0) serve(theirs.get(), program);
  return ProgramRunner(std::move(ours), pid);
}

ProgramRunner::~ProgramRunner() {
  if (pid_ < 0) return;
  channel_.reset();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

bool ProgramRunner::run(const std::string& argument, const std::vector<std::string>& variables) const {
  std::string message = argument + '\0';
  for (const std::string& variable : variables) message += variable + '\0';
  if (message.size() > max_message) return false;
  return ::send(channel_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

}  // namespace rtev
