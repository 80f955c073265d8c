// SPDX-License-Identifier: MIT
#include "session/command/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <ranges>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/exit_status.hpp"
#include "base/file_io.hpp"
#include "base/program_names.hpp"
#include "session/command/ring_size.hpp"
#include "session/command/sudo_user.hpp"
#include "session/stop_signal.hpp"

namespace rtev {
namespace {

constexpr int cannot_run = 126;

constexpr const char* preserve_rings_variable = "OCAML_RUNTIME_EVENTS_PRESERVE";

bool has_terminal() {
  return static_cast<bool>(UniqueFd(::open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)));
}

using Environment = std::vector<std::pair<const char*, std::string>>;

/// What OCaml's runtime is to know. The caller's OCAMLRUNPARAM counts, or else CAMLRUNPARAM.
Environment environment_of(const std::optional<PrivateDir>& directory, bool keeps_rings, std::string& ring_note) {
  Environment variables{{"OCAML_RUNTIME_EVENTS_START", "1"}};
  const char* const chosen = std::getenv(ring_directory_variable);
  const std::string path = directory ? directory->path() : chosen != nullptr ? chosen : "";
  if (directory) variables.emplace_back(ring_directory_variable, path);
  if (keeps_rings) variables.emplace_back(preserve_rings_variable, "1");
  const char* parameters = std::getenv("OCAMLRUNPARAM");
  if (parameters == nullptr) parameters = std::getenv("CAMLRUNPARAM");
  if (auto fitting = fitting_rings(parameters != nullptr ? parameters : "", ring_limits(path))) {
    variables.emplace_back("OCAMLRUNPARAM", std::move(fitting->parameters));
    ring_note = std::move(fitting->note);
  }
  return variables;
}

/// In the child, between fork and exec.
[[noreturn]] void become(const std::vector<std::string>& arguments, const Environment& variables,
                         const std::optional<SudoUser>& user, Command::Stdout out, Command::Session session,
                         sighandler_t child_handler, const sigset_t& signals, int gate, int failed) {
  const auto give_up = [&] {
    const int code = errno;
    [[maybe_unused]] const ssize_t put = ::write(failed, &code, sizeof code);
    ::_exit(code == ENOENT ? Command::not_found : cannot_run);
  };
  if (session == Command::Session::own) ::setsid();
  // A command must not outlive a tracer that was killed before it started the command.
  char go = 0;
  if (::read(gate, &go, 1) != 1) ::_exit(cannot_run);

  ::signal(SIGCHLD, child_handler);
  StopSignal::restore_actions();
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  if (out == Command::Stdout::to_stderr) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
  if (user && !user->become()) give_up();

  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
  give_up();
  ::_exit(cannot_run);
}

/// False only if there is no such file. Whether it can be executed is left to exec.
bool is_found(const std::string& name) {
  if (name.contains('/')) return ::access(name.c_str(), F_OK) == 0;
  const char* const path = std::getenv("PATH");
  if (path == nullptr) return true;
  return std::ranges::any_of(std::views::split(std::string_view(path), ':'), [&](const auto& directory) {
    const std::string_view folder(directory.begin(), directory.end());
    return ::access((std::string(folder.empty() ? "." : folder) + '/' + name).c_str(), F_OK) == 0;
  });
}

std::unexpected<Error> cannot_run_error(int code, const std::string& name) {
  const bool is_path = name.contains('/');
  std::string hint = "check whether it is a program for this host";
  std::error_code ignored;
  if (code == EACCES) {
    hint = std::filesystem::is_directory(name, ignored) ? "it is a directory: name a program in it"
                                                        : "let this user execute it (chmod +x) and enter its directory";
  } else if (code == ENOENT && is_found(name)) {
    hint = "its interpreter is missing: see its first line (#!), or what file " + name + " says";
  } else if (code == ENOENT) {
    hint = is_path
               ? "check the name and the directory"
               : "it is not in PATH, which sudo may have changed; write ./" + name + " for a program in this directory";
  }
  return errno_error(code, "cannot run", name, std::move(hint));
}

}  // namespace

Result<void> Command::check(const std::string& name) {
  if (is_found(name)) return {};
  return cannot_run_error(ENOENT, name);
}

Command::Session Command::session_for(bool is_other_user, bool has_terminal,
                                      const std::optional<std::string>& legacy_tiocsti) {
  const bool is_forbidden = legacy_tiocsti && legacy_tiocsti->starts_with('0');
  return is_other_user && has_terminal && !is_forbidden ? Session::own : Session::shared;
}

Result<Command> Command::prepare(std::vector<std::string> arguments, Look look, Stdout out,
                                 std::optional<Session> session, RingFiles files) {
  Command command;
  command.arguments_ = std::move(arguments);
  command.look_ = std::move(look);
  const auto user = SudoUser::of_environment();
  // Whoever wants the files of rings to stay looks for them where the runtime puts them. There are no threads yet.
  const bool has_rings = files != RingFiles::none;
  if (has_rings && std::getenv(ring_directory_variable) == nullptr && std::getenv(preserve_rings_variable) != nullptr) {
    std::error_code error;
    if (const auto here = std::filesystem::current_path(error); !error)
      ::setenv(ring_directory_variable, here.c_str(), 1);
  }
  if (has_rings && std::getenv(ring_directory_variable) == nullptr) {
    auto directory = PrivateDir::create(user, command.look_);
    if (!directory) return std::unexpected(std::move(directory.error()));
    command.directory_.emplace(std::move(*directory));
    command.keeps_rings_ = files == RingFiles::kept;
  }
  const Environment variables = files == RingFiles::none
                                    ? Environment()
                                    : environment_of(command.directory_, command.keeps_rings_, command.ring_note_);

  std::array<int, 2> gate{}, failed{};
  if (::pipe2(gate.data(), O_CLOEXEC) != 0 || ::pipe2(failed.data(), O_CLOEXEC) != 0)
    return errno_error(errno, "cannot start", command.arguments_.front());
  UniqueFd gate_end(gate[0]), failed_end(failed[1]);
  command.gate_ = UniqueFd(gate[1]);
  command.failed_ = UniqueFd(failed[0]);

  if (!session)
    session = session_for(user.has_value(), has_terminal(), read_small_file("/proc/sys/dev/tty/legacy_tiocsti", 16));
  command.has_own_session_ = session == Session::own;
  // It may be ignored since the start of the tracer; then there would be no exit status to wait for.
  const sighandler_t child_handler = ::signal(SIGCHLD, SIG_DFL);
  // What is sent to the process group meanwhile, the child gets when it becomes the command.
  sigset_t all, signals;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &signals);
  command.pid_ = ::fork();
  if (command.pid_ == 0) {
    command.gate_.reset();
    become(command.arguments_, variables, user, out, *session, child_handler, signals, gate_end.get(),
           failed_end.get());
  }
  const int code = errno;
  ::pthread_sigmask(SIG_SETMASK, &signals, nullptr);
  if (command.pid_ < 0) return errno_error(code, "cannot start", command.arguments_.front());
  command.pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, command.pid_, 0)));
  if (!command.pidfd_) return errno_error(errno, "cannot watch", command.arguments_.front());
  return command;
}

Command::Command(Command&& other) noexcept
    : arguments_(std::move(other.arguments_)),
      look_(std::move(other.look_)),
      directory_(std::move(other.directory_)),
      ring_note_(std::move(other.ring_note_)),
      survivors_(std::move(other.survivors_)),
      pid_(std::exchange(other.pid_, -1)),
      status_(other.status_),
      has_own_session_(other.has_own_session_),
      keeps_rings_(other.keeps_rings_),
      pidfd_(std::move(other.pidfd_)),
      gate_(std::move(other.gate_)),
      failed_(std::move(other.failed_)) {}

Command::~Command() {
  gate_.reset();  // a child that was never started ends here
  if (pid_ > 0 && status_ < 0) wait();
}

Result<void> Command::start() {
  const char go = 1;
  if (::write(gate_.get(), &go, 1) != 1) return errno_error(errno, "cannot start", arguments_.front());
  gate_.reset();
  // The other end closes by itself when the command is executed.
  int code = 0;
  ssize_t got = 0;
  while ((got = ::read(failed_.get(), &code, sizeof code)) < 0 && errno == EINTR) {
  }
  if (got != sizeof code) return {};
  return cannot_run_error(code, arguments_.front());
}

std::string Command::program_name() const {
  constexpr std::size_t max_comm = 15;
  return std::string(file_name_of(arguments_.front()).substr(0, max_comm));
}

std::string Command::any_ring_directory() const {
  const char* const chosen = std::getenv(ring_directory_variable);
  return directory_ ? directory_->path() : chosen != nullptr ? chosen : "";
}

void Command::send(int signal_number) const {
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal_number, nullptr, 0);
}

void Command::send_to_group(int signal_number) const {
  // The number is not used again before wait().
  if (status_ >= 0 || ::kill(-pid_, signal_number) != 0) send(signal_number);
}

void Command::abandon() const noexcept {
  pollfd ended{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  const bool uses_rings = !gate_ && ::poll(&ended, 1, 0) == 0;
  if (directory_ && !uses_rings) directory_->remove();
}

void Command::leave() {
  if (directory_) directory_->leave();
  status_ = 0;
}

int Command::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = WIFSIGNALED(status) ? exit_of_signal + WTERMSIG(status) : WEXITSTATUS(status);
  // OCaml aborts a process that cannot create a ring, for example in a child that is forked later.
  if (!directory_) return status_;
  auto users = directory_->users(look_);
  if (!users || !users->empty()) directory_->leave();
  if (users) survivors_ = std::move(*users);
  return status_;
}

}  // namespace rtev
