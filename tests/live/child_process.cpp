// SPDX-License-Identifier: MIT
#include "live/child_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "support/answered_call.hpp"

namespace rtev::test {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Pipe {
  UniqueFd read, write;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno("pipe2");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Opens a terminal that passes output on unchanged.
Pipe make_terminal() {
  int master = -1, slave = -1;
  termios raw{};
  ::cfmakeraw(&raw);
  const winsize size{.ws_row = 50, .ws_col = 200, .ws_xpixel = 0, .ws_ypixel = 0};
  if (::openpty(&master, &slave, nullptr, &raw, &size) != 0) fail_errno("openpty");
  ::fcntl(master, F_SETFD, FD_CLOEXEC);
  ::fcntl(slave, F_SETFD, FD_CLOEXEC);
  return {UniqueFd(master), UniqueFd(slave)};
}

/// Removes variables of the test's environment that would change programs under test.
bool is_inherited(std::string_view variable) {
  constexpr std::array<std::string_view, 6> prefixes{"OCAML", "CAML", "RTEV_", "SUDO_", "NO_COLOR=", "CLICOLOR"};
  return std::ranges::none_of(prefixes, [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

std::vector<std::string> environment(const Command& command) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (is_inherited(text) && !command.env.contains(std::string(text.substr(0, text.find('=')))))
      variables.emplace_back(text);
  }
  for (const auto& [name, value] : command.env) variables.emplace_back(name).append("=").append(value);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

/// Runs in the forked child of a multi-threaded program: async-signal-safe calls only.
[[noreturn]] void become(const Command& command, char* const* argv, char* const* env, const std::array<int, 3>& stdio,
                         int error_fd) {
  ::setpgid(0, 0);
  bool ready = true;
  for (int target = 0; target < 3; ++target) ready = ready && ::dup2(stdio[target], target) == target;
  if (command.keep_fd >= 0) ready = ready && ::fcntl(command.keep_fd, F_SETFD, 0) == 0;
  if (command.cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(*command.cpu, &cpus);
    ready = ready && ::sched_setaffinity(0, sizeof cpus, &cpus) == 0;
  }
  if (!command.directory.empty()) ready = ready && ::chdir(command.directory.c_str()) == 0;
  if (command.user)
    ready = ready && ::setgroups(0, nullptr) == 0 && ::setgid(*command.user) == 0 && ::setuid(*command.user) == 0;
  if (command.refused_call) ready = ready && answer_call(*command.refused_call, SECCOMP_RET_ERRNO | EACCES) == 0;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A shell ignores it in background jobs, and children inherit that.
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGQUIT, SIG_DFL);
  if (ready) ::execvpe(argv[0], argv, env);
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(error_fd, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

std::optional<int> ExitStatus::code() const {
  return WIFEXITED(raw) ? std::optional(WEXITSTATUS(raw)) : std::nullopt;
}

std::optional<int> ExitStatus::signal() const {
  return WIFSIGNALED(raw) ? std::optional(WTERMSIG(raw)) : std::nullopt;
}

Process::Process(const Command& command) : name_(command.argv.at(0)) {
  Pipe in = make_pipe(), out = command.terminal ? make_terminal() : make_pipe(),
       err = command.error_terminal ? make_terminal() : make_pipe(), error = make_pipe();
  std::vector<std::string> arguments = command.argv, variables = environment(command);
  const auto argv = pointers(arguments), env = pointers(variables);

  pid_ = ::fork();
  if (pid_ < 0) fail_errno("fork");
  if (pid_ == 0)
    become(command, argv.data(), env.data(), {in.read.get(), out.write.get(), err.write.get()}, error.write.get());
  ::setpgid(pid_, pid_);  // In parent and child: either may run first.

  error.write.reset();
  int code = 0;
  if (::read(error.read.get(), &code, sizeof code) > 0) {
    ::waitpid(pid_, nullptr, 0);
    throw std::system_error(code, std::generic_category(), name_);
  }
  pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  if (!pidfd_ || !stop_) fail_errno("pidfd_open or eventfd");
  stdin_ = std::move(in.write);
  stdout_ = std::move(out.read);
  stderr_ = std::move(err.read);
  out.write.reset();
  err.write.reset();
  collector_ = std::jthread([this] { collect(); });
}

Process::~Process() {
  // Includes processes that the program started and left running.
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
  if (!status_) ::waitpid(pid_, nullptr, 0);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
}

void Process::collect() {
  std::array<char, 65536> buffer;
  bool out = true, err = true;
  while (out || err) {
    std::array<pollfd, 3> fds{
        {{stop_.get(), POLLIN, 0}, {out ? stdout_.get() : -1, POLLIN, 0}, {err ? stderr_.get() : -1, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) continue;
    if (fds[0].revents != 0) return;
    for (const bool is_out : {true, false}) {
      const pollfd& fd = fds[is_out ? 1 : 2];
      if (fd.revents == 0) continue;
      const ssize_t size = ::read(fd.fd, buffer.data(), buffer.size());
      const std::lock_guard lock(mutex_);
      if (size > 0)
        (is_out ? out_ : err_).append(buffer.data(), static_cast<std::size_t>(size));
      else if (size == 0 || errno != EINTR)  // A terminal reports its end as EIO.
        (is_out ? out : err) = false;
      out_open_ = out;
      err_open_ = err;
      changed_.notify_all();
    }
  }
}

std::optional<std::string> Process::next_line(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  std::size_t end = std::string::npos;
  changed_.wait_until(lock, deadline, [&] {
    end = out_.find('\n', read_);
    return end != std::string::npos || !out_open_;
  });
  if (end == std::string::npos) return std::nullopt;
  std::string line = out_.substr(read_, end - read_);
  read_ = end + 1;
  return line;
}

std::vector<std::string> Process::lines_until(std::string_view last) {
  const auto deadline = Clock::now() + wait_timeout;
  std::vector<std::string> lines;
  for (;;) {
    auto line = next_line(deadline);
    if (!line) fail("did not print \"" + std::string(last) + "\"");
    if (*line == last) return lines;
    lines.push_back(std::move(*line));
  }
}

std::string Process::line_with(std::string_view text) {
  const auto deadline = Clock::now() + wait_timeout;
  while (auto line = next_line(deadline)) {
    if (line->contains(text)) return *line;
  }
  fail("printed no line with \"" + std::string(text) + "\"");
}

std::string Process::error_with(std::string_view text) {
  std::unique_lock lock(mutex_);
  std::size_t at = std::string::npos, end = std::string::npos;
  changed_.wait_for(lock, wait_timeout, [&] {
    at = err_.find(text);
    end = at == std::string::npos ? at : err_.find('\n', at);
    return end != std::string::npos || !err_open_;
  });
  if (end != std::string::npos) {
    const std::size_t begin = err_.rfind('\n', at) + 1;  // 0 for the first line
    return err_.substr(begin, end - begin);
  }
  lock.unlock();
  fail("wrote no error with \"" + std::string(text) + "\"");
}

void Process::write(std::string_view text) {
  // If the program has ended, SIGPIPE must not kill the test.
  struct sigaction ignore{}, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  const ssize_t written = ::write(stdin_.get(), text.data(), text.size());
  const int error = errno;
  ::sigaction(SIGPIPE, &before, nullptr);
  if (written != static_cast<ssize_t>(text.size())) fail(std::string("does not read: ") + std::strerror(error));
}

void Process::signal(int number) {
  if (::kill(pid_, number) != 0) fail_errno("kill " + name_);
}

void Process::stop() {
  signal(SIGSTOP);
  siginfo_t stopped{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED) != 0) fail_errno("waitid");
}

bool Process::running() {
  pollfd fd{pidfd_.get(), POLLIN, 0};
  return !status_ && ::poll(&fd, 1, 0) == 0;
}

Outcome Process::wait(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  if (!status_) {
    pollfd fd{pidfd_.get(), POLLIN, 0};
    int ended = 0;
    do {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      ended = ::poll(&fd, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    } while (ended < 0 && errno == EINTR);
    if (ended <= 0) fail("does not end");
    int raw = 0;
    if (::waitpid(pid_, &raw, 0) != pid_) fail_errno("waitpid");
    status_ = ExitStatus{raw};
  }
  std::unique_lock lock(mutex_);
  const bool closed = changed_.wait_until(lock, deadline, [&] { return !out_open_ && !err_open_; });
  if (!closed) {
    lock.unlock();
    fail("ended, but a process that it started holds its output open");
  }
  return {*status_, out_, err_};
}

void Process::fail(const std::string& what) {
  const std::lock_guard lock(mutex_);
  throw std::runtime_error(name_ + " (" + std::to_string(pid_) + ") " + what + "; stdout: " + out_.substr(0, 2000) +
                           "; stderr: " + err_.substr(0, 2000));
}

Outcome run(const Command& command) {
  Process process(command);
  return run_through(process);
}

Outcome run_through(Process& process) {
  process.close_stdin();
  return process.wait();
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code gone;
  for (const std::filesystem::directory_entry& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream list(thread.path() / "children");
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

std::vector<pid_t> children_named(pid_t pid, const std::string& name) {
  std::vector<pid_t> children = children_of(pid);
  std::erase_if(children, [&](pid_t child) {
    std::ifstream comm("/proc/" + std::to_string(child) + "/comm");
    std::string found;
    return !std::getline(comm, found) || found != name;
  });
  return children;
}

std::vector<pid_t> family_of(pid_t pid) {
  std::vector<pid_t> all{pid};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto children = children_of(all[i]);
    all.insert(all.end(), children.begin(), children.end());
  }
  return all;
}

void start_ready(std::optional<Process>& process, Command command) {
  Pipe ready = make_pipe();
  command.keep_fd = ready.write.get();
  command.env["RTEV_READY_FD"] = std::to_string(ready.write.get());
  process.emplace(command);
  ready.write.reset();

  pollfd fd{ready.read.get(), POLLIN, 0};
  std::array<char, 6> word{};
  const auto limit = static_cast<int>(std::chrono::milliseconds(wait_timeout).count());
  if (::poll(&fd, 1, limit) > 0 && ::read(fd.fd, word.data(), word.size()) == std::ssize(word)) return;
  process->signal(SIGKILL);
  throw std::runtime_error("rtev-bpf did not get ready: " + process->wait().err);
}

}  // namespace rtev::test
