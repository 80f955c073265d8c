// SPDX-License-Identifier: MIT
// A terminal as a screen: shows lines, and reads keys.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"
#include "top/keys.hpp"
#include "top/lines.hpp"

namespace rtev::top {

/// Shows the alternate screen of the terminal behind stdout. The terminal is as before when the object is destroyed,
/// when the process is stopped (Ctrl-Z), and when it ends by a signal that can be caught. Nothing waits for the
/// terminal: what it does not take is shown later. One object at a time.
class TerminalScreen {
 public:
  static Result<std::unique_ptr<TerminalScreen>> open();
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;
  ~TerminalScreen();

  /// Readable when there are keys.
  int key_fd() const { return terminal_.get(); }
  std::vector<Key> read_keys();
  /// Readable when the screen has to be drawn again: its size changed, the process goes on after a stop, or
  /// ask_to_draw().
  int change_fd() const;
  /// Any thread.
  void ask_to_draw() const;

  struct Size {
    std::size_t columns = 80, lines = 24;
  };
  Size size() const;
  /// As many lines as the screen has. Clears change_fd().
  void draw(const Lines& lines);

 private:
  explicit TerminalScreen(UniqueFd own);

  std::string rendered(const Line& line) const;
  bool write(const std::string& bytes) const;

  UniqueFd terminal_;
  KeyDecoder decoder_;
  bool has_colors_;
  Size drawn_{};
  std::vector<std::string> shown_;  ///< rendered, by line; empty: all has to be drawn
};

}  // namespace rtev::top
