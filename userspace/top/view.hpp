// SPDX-License-Identifier: MIT
// What the screen of `rtev-bpf top` shows, and what keys do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "top/columns.hpp"
#include "top/interval_history.hpp"
#include "top/keys.hpp"
#include "top/lines.hpp"

namespace rtev::top {

struct ViewOptions {
  const Column* sorted_by = nullptr;
  bool by_process = false;  ///< also processes of programs with many have rows of their own
  std::string filter{};
  std::string input{};  ///< the name of the file that is replayed, escaped; empty: live
  /// Details of a process as of now, for intervals without.
  std::function<ProcessDetails(ProcessIndex process)> details{};
};

/// A list of processes, and a screen for one of them. Live it follows the newest interval until it is paused. A replay
/// begins with the first interval, and step() goes on. Screens have any size. One thread.
class View {
 public:
  explicit View(ViewOptions options) : options_(std::move(options)) {}

  void add(Interval&& interval);
  /// Of a replay: the next interval, unless it is paused or at its end.
  void step();

  /// What a key asks of others.
  enum class Wish : std::uint8_t { none, quit, dump };
  Wish press(const Key& key, std::size_t height);

  /// A message in the last line, until the next key.
  void show_message(std::string message) { message_ = std::move(message); }
  /// Exactly `height` lines.
  Lines draw(std::size_t width, std::size_t height);

 private:
  enum class Screen : std::uint8_t { list, process, help };

  bool is_live() const { return options_.input.empty(); }
  const Interval& interval() const { return history_[at_]; }
  void go_to(std::size_t number);
  std::size_t last_to_show() const;
  void edit_filter(const Key& key);
  bool press_anywhere(const Key& key);
  void press_in_list(const Key& key, std::size_t height);
  void press_in_process(const Key& key, std::size_t height);
  void move_selection(std::ptrdiff_t by);
  void sort_by_next(std::ptrdiff_t by);
  std::vector<const ProcessFigures*> listed() const;

  Line title(std::size_t width) const;
  Line last_line() const;
  void draw_list(Lines& lines, std::size_t width, std::size_t height);
  void draw_process(Lines& lines, std::size_t width, std::size_t height);
  static Lines help(std::size_t width);
  void add_scrolled(Lines& lines, const Lines& all, std::size_t height);
  Line titles(const std::vector<const Column*>& columns, std::size_t line_width) const;
  Line row(const ProcessFigures& process, const std::vector<const Column*>& columns, std::size_t line_width,
           bool is_selected) const;
  Lines process_lines(const ProcessFigures& process, std::size_t width) const;

  ViewOptions options_;
  IntervalHistory history_;
  std::size_t at_ = 0;  ///< number of the interval that is shown
  bool is_paused_ = false;
  Screen screen_ = Screen::list;
  std::uint64_t selected_ = 0;               ///< as ProcessFigures::row(); 0: the first one
  std::uint32_t opened_ = 0;                 ///< the program whose processes are listed; 0: all
  std::size_t first_shown_ = 0;              ///< row of the list
  std::size_t scrolled_ = 0;                 ///< lines of the other screens
  std::optional<ProcessDetails> details_{};  ///< of the selected process, as of the interval that is shown
  bool edits_filter_ = false;
  std::string filter_before_{};
  std::string message_{};
};

}  // namespace rtev::top
