// SPDX-License-Identifier: MIT
#include "live/terminal.hpp"

#include <chrono>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/poll_until.hpp"

namespace rtev::test {

Terminal::Terminal(unsigned columns, unsigned lines) {
  const Outcome started =
      tmux({"-f", "/dev/null", "new-session", "-d", "-x", std::to_string(columns), "-y", std::to_string(lines), "sh"});
  if (started.status.code() != 0) throw std::runtime_error("tmux: " + started.err);
  until([](const std::string& shown) { return shown.contains("# ") || shown.contains("#\n"); });  // its prompt
}

Terminal::~Terminal() {
  tmux({"kill-server"});
}

Outcome Terminal::tmux(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {"tmux", "-u", "-S", dir_ / "tmux"});
  return run({.argv = std::move(arguments), .env = {{"LC_ALL", "C.UTF-8"}}});
}

void Terminal::press(const std::vector<std::string>& keys) const {
  std::vector<std::string> arguments{"send-keys"};
  arguments.insert(arguments.end(), keys.begin(), keys.end());
  tmux(std::move(arguments));
}

void Terminal::type(const std::string& line) const {
  tmux({"send-keys", "-l", line});
  press({"Enter"});
}

void Terminal::resize(unsigned columns, unsigned lines) const {
  tmux({"resize-window", "-x", std::to_string(columns), "-y", std::to_string(lines)});
}

std::string Terminal::screen() const {
  return tmux({"capture-pane", "-p"}).out;
}

std::string Terminal::until(const std::function<bool(const std::string& screen)>& condition) const {
  std::string shown;
  const auto is_shown = [&] { return condition(shown = screen()); };
  if (!poll_until(is_shown)) throw std::runtime_error("timeout while waiting for a screen; there is:\n" + shown);
  return shown;
}

std::string Terminal::until(const std::string& text) const {
  return until([&](const std::string& shown) { return shown.contains(text); });
}

std::vector<std::string> lines_of(const std::string& screen) {
  std::vector<std::string> lines;
  std::istringstream in(screen);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace rtev::test
