// SPDX-License-Identifier: MIT
// A real terminal for tests, with a shell in it: tmux.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "live/child_process.hpp"
#include "support/temp_dir.hpp"

namespace rtev::test {

/// Ends, with all that runs in it, when it is destroyed.
class Terminal {
 public:
  Terminal(unsigned columns, unsigned lines);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  /// Names of keys as of tmux: "a", "Enter", "C-c", "Escape", "Down".
  void press(const std::vector<std::string>& keys) const;
  /// Types a line, and Enter.
  void type(const std::string& line) const;
  void resize(unsigned columns, unsigned lines) const;
  /// What it shows, without blanks at the end of lines.
  std::string screen() const;
  /// Waits until the screen satisfies a condition, and returns it. Throws std::runtime_error with the screen after
  /// wait_timeout.
  std::string until(const std::function<bool(const std::string& screen)>& condition) const;
  /// Until it contains a text.
  std::string until(const std::string& text) const;

 private:
  Outcome tmux(std::vector<std::string> arguments) const;

  TempDir dir_;
};

std::vector<std::string> lines_of(const std::string& screen);

}  // namespace rtev::test
