// SPDX-License-Identifier: MIT
#include "top/terminal_screen.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/proc_files.hpp"
#include "base/terminal.hpp"

namespace rtev::top {
namespace {

// The codes of xterm, which all terminals know: alternate screen, cursor, clear.
constexpr std::string_view enter_codes = "\033[?1049h\033[?25l\033[0m\033[2J",
                           leave_codes = "\033[0m\033[?25h\033[?1049l";

/// How long the rest of an escape sequence may take.
constexpr int sequence_timeout_ms = 25;

/// Signals that end a process at once: the terminal is restored first.
constexpr std::array fatal_signals{SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGABRT,   SIGQUIT, SIGSYS,
                                   SIGTRAP, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU};

// Signal handlers reach nothing but statics.
std::atomic<int> terminal = -1;
std::atomic<bool> is_stale = false, is_entered = false;
EventFd* changes = nullptr;
struct termios mode_before, mode_of_screen;
std::array<struct sigaction, fatal_signals.size()> fatal_before;
struct sigaction resize_before, stop_before, continue_before;

void put(std::string_view bytes) {
  [[maybe_unused]] const ssize_t written = ::write(terminal, bytes.data(), bytes.size());
}

/// Else the terminal is that of the shell. One that is not the terminal of the session has no shell.
bool is_in_foreground() {
  const pid_t group = ::tcgetpgrp(terminal);
  return group < 0 || group == ::getpgrp();
}

void enter() {
  is_stale = true;
  if (!is_in_foreground()) return;
  ::tcsetattr(terminal, TCSANOW, &mode_of_screen);
  put(enter_codes);
  is_entered = true;
}

void leave() {
  if (!is_entered.exchange(false)) return;
  put(leave_codes);
  // In the background this would stop the process.
  sigset_t stops, before;
  ::sigemptyset(&stops);
  ::sigaddset(&stops, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &stops, &before);
  ::tcsetattr(terminal, TCSANOW, &mode_before);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ask() {
  if (changes != nullptr) changes->signal();
}

void on_resize(int /*number*/) {
  const int saved_errno = errno;
  is_stale = true;
  ask();
  errno = saved_errno;
}

/// Also after a stop that could not be seen coming.
void on_continue(int /*number*/) {
  const int saved_errno = errno;
  enter();
  ask();
  errno = saved_errno;
}

void on_stop(int number) {
  const int saved_errno = errno;
  leave();
  // Stops here, as without a handler.
  struct sigaction by_default{}, handler{};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(number, &by_default, &handler);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, number);
  ::raise(number);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::sigaction(number, &handler, nullptr);
  errno = saved_errno;
}

void on_fatal(int number) {
  restore_terminal();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void handle(int number, void (*handler)(int), struct sigaction* before) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, before);
}

}  // namespace

Result<std::unique_ptr<TerminalScreen>> TerminalScreen::open() {
  // Opened again, so that O_NONBLOCK does not change the descriptors of the shell.
  UniqueFd own = open_proc("/proc/self/fd/1", O_RDWR | O_NONBLOCK);
  if (!own || ::tcgetattr(own.get(), &mode_before) != 0)
    return errno_error(errno, "cannot use the terminal", "stdout", "top -b prints text instead");
  return std::unique_ptr<TerminalScreen>(new TerminalScreen(std::move(own)));
}

TerminalScreen::TerminalScreen(UniqueFd own) : terminal_(std::move(own)) {
  const char* const no_color = std::getenv("NO_COLOR");
  has_colors_ = no_color == nullptr || *no_color == '\0';
  mode_of_screen = mode_before;
  mode_of_screen.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  mode_of_screen.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL);
  changes = new EventFd;
  terminal = terminal_.get();
  set_terminal_restorer(leave);
  for (std::size_t i = 0; i < fatal_signals.size(); ++i) handle(fatal_signals[i], on_fatal, &fatal_before[i]);
  handle(SIGWINCH, on_resize, &resize_before);
  handle(SIGTSTP, on_stop, &stop_before);
  handle(SIGCONT, on_continue, &continue_before);
  enter();
}

TerminalScreen::~TerminalScreen() {
  ::sigaction(SIGWINCH, &resize_before, nullptr);
  ::sigaction(SIGTSTP, &stop_before, nullptr);
  ::sigaction(SIGCONT, &continue_before, nullptr);
  for (std::size_t i = 0; i < fatal_signals.size(); ++i) ::sigaction(fatal_signals[i], &fatal_before[i], nullptr);
  set_terminal_restorer(nullptr);
  leave();
  terminal = -1;
  delete std::exchange(changes, nullptr);
}

int TerminalScreen::change_fd() const {
  return changes->get();
}

void TerminalScreen::ask_to_draw() const {
  ask();
}

std::vector<Key> TerminalScreen::read_keys() {
  std::vector<Key> keys;
  std::array<char, 256> bytes;
  ssize_t size = 0;
  const auto read_more = [&] { return size = ::read(terminal_.get(), bytes.data(), bytes.size()); };
  const auto add = [&] { decoder_.add({bytes.data(), static_cast<std::size_t>(size)}, keys); };
  if (read_more() > 0) add();
  while (decoder_.is_open()) {
    pollfd more{.fd = terminal_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&more, 1, sequence_timeout_ms) <= 0 || read_more() <= 0) break;
    add();
  }
  decoder_.finish(keys);
  return keys;
}

TerminalScreen::Size TerminalScreen::size() const {
  winsize size{};
  if (::ioctl(terminal_.get(), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .lines = size.ws_row};
}

std::string TerminalScreen::rendered(const Line& line) const {
  std::string text;
  for (const Piece& piece : line.pieces()) {
    const std::string_view code = [&] {
      switch (piece.style) {
        case Style::plain:
          return "";
        case Style::bold:
          return "1";
        case Style::dim:
          return "2";
        case Style::title:
          return "7";
        case Style::selected:
          return "1;7";
        case Style::alarm:
          return has_colors_ ? "1;31" : "1";
        case Style::selected_alarm:
          return has_colors_ ? "1;7;31" : "1;7";
      }
      return "";
    }();
    text += code.empty() ? piece.text : fmt::format("\033[{}m{}\033[0m", code, piece.text);
  }
  return text;
}

void TerminalScreen::draw(const Lines& lines) {
  changes->clear();
  if (!is_entered) return;
  const Size now = size();
  if (is_stale.exchange(false) || now.columns != drawn_.columns || now.lines != drawn_.lines) shown_.clear();
  drawn_ = now;
  std::string out = shown_.empty() ? "\033[0m\033[2J" : "";
  shown_.resize(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string text = rendered(lines[i]);
    if (text == shown_[i]) continue;
    // Cleared first: after the last column of a terminal that would take away its character.
    out += fmt::format("\033[{};1H\033[K{}", i + 1, text);
    shown_[i] = std::move(text);
  }
  if (!write(out)) shown_.clear();
}

/// False if the terminal did not take all of it.
bool TerminalScreen::write(const std::string& bytes) const {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t written = ::write(terminal_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace rtev::top
