// SPDX-License-Identifier: MIT
#include "top/view.hpp"

#include <algorithm>
#include <utility>

#include "base/escape.hpp"

namespace rtev::top {

void View::add(Interval&& interval) {
  const bool follows = is_live() && !is_paused_;
  const std::size_t forgotten = history_.forgotten();
  history_.add(std::move(interval));
  // The interval that is shown stays the same, as long as it is there.
  at_ -= std::min(at_, history_.forgotten() - forgotten);
  if (follows) go_to(history_.size() - 1);
}

void View::step() {
  if (!is_paused_ && at_ < last_to_show()) go_to(at_ + 1);
}

/// The last interval; or the one before, if the recording ends soon after it: figures of milliseconds say little.
std::size_t View::last_to_show() const {
  if (history_.empty()) return 0;
  const std::size_t last = history_.size() - 1;
  const bool is_short =
      last > 0 && history_[last].is_partial && history_[last].length_ns < history_[last - 1].length_ns / 2;
  return is_short ? last - 1 : last;
}

void View::go_to(std::size_t number) {
  at_ = number;
  details_.reset();
}

View::Wish View::press(const Key& key, std::size_t height) {
  message_.clear();
  if (edits_filter_) {
    edit_filter(key);
    return Wish::none;
  }
  if (key.character == 'q' && screen_ == Screen::list) return Wish::quit;
  if (key.character == 'd') return Wish::dump;
  if (press_anywhere(key)) return Wish::none;
  switch (screen_) {
    case Screen::list:
      press_in_list(key, height);
      break;
    case Screen::process:
    case Screen::help:
      press_in_process(key, height);
      break;
  }
  return Wish::none;
}

/// In time.
bool View::press_anywhere(const Key& key) {
  if (history_.empty()) return false;
  const std::size_t last = history_.size() - 1;
  if (key.character == 'p' || key.character == ' ') {
    is_paused_ = !is_paused_;
    if (!is_paused_ && is_live()) go_to(last);
  } else if (key.kind == Key::Kind::left || key.kind == Key::Kind::right) {
    is_paused_ = true;
    const bool back = key.kind == Key::Kind::left;
    if (back ? at_ > 0 : at_ < last) go_to(back ? at_ - 1 : at_ + 1);
  } else if (key.character == 'h' || key.character == '?') {
    screen_ = screen_ == Screen::help ? Screen::list : Screen::help;
    scrolled_ = 0;
  } else {
    return false;
  }
  return true;
}

void View::press_in_list(const Key& key, std::size_t height) {
  using enum Key::Kind;
  const auto page = static_cast<std::ptrdiff_t>(std::max<std::size_t>(height, 8) - 6);
  constexpr std::ptrdiff_t all = PTRDIFF_MAX / 2;
  if (key.kind == up || key.character == 'k') return move_selection(-1);
  if (key.kind == down || key.character == 'j') return move_selection(1);
  if (key.kind == page_up) return move_selection(-page);
  if (key.kind == page_down) return move_selection(page);
  if (key.kind == home) return move_selection(-all);
  if (key.kind == end) return move_selection(all);
  if (key.character == 's') return sort_by_next(1);
  if (key.character == 'S') return sort_by_next(-1);
  if (key.kind == escape && options_.filter.empty()) {
    selected_ = std::uint64_t{std::exchange(opened_, 0)} << 32;
  } else if (key.kind == escape) {
    options_.filter.clear();
  } else if (key.character == '/') {
    edits_filter_ = true;
    filter_before_ = options_.filter;
  } else if (key.kind == enter && !history_.empty()) {
    const auto rows = listed();
    if (rows.empty()) return;
    const auto found = std::ranges::find(rows, selected_, &ProcessFigures::row);
    const ProcessFigures& row = found != rows.end() ? **found : *rows.front();
    selected_ = row.row();
    if (row.index == 0) {
      opened_ = row.program;
      return;
    }
    screen_ = Screen::process;
    scrolled_ = 0;
    details_.reset();
  }
}

void View::press_in_process(const Key& key, std::size_t height) {
  using enum Key::Kind;
  const std::size_t page = std::max<std::size_t>(height, 8) - 4;
  if (key.kind == escape || key.kind == backspace || key.kind == enter || key.character == 'q') {
    screen_ = Screen::list;
  } else if (key.kind == down || key.character == 'j') {
    ++scrolled_;
  } else if (key.kind == up || key.character == 'k') {
    scrolled_ -= std::min<std::size_t>(scrolled_, 1);
  } else if (key.kind == page_down) {
    scrolled_ += page;
  } else if (key.kind == page_up) {
    scrolled_ -= std::min(scrolled_, page);
  } else if (key.kind == home) {
    scrolled_ = 0;
  } else if (key.kind == end) {
    scrolled_ = SIZE_MAX / 2;  // as far as there is something
  }
}

void View::edit_filter(const Key& key) {
  using enum Key::Kind;
  constexpr std::size_t max_filter = 64;
  std::string& filter = options_.filter;
  if (key.kind == enter) {
    edits_filter_ = false;
  } else if (key.kind == escape) {
    edits_filter_ = false;
    filter = filter_before_;
  } else if (key.kind == backspace && !filter.empty()) {
    filter.pop_back();
  } else if (key.kind == character && filter.size() < max_filter) {
    filter += key.character;
  }
}

void View::move_selection(std::ptrdiff_t by) {
  if (history_.empty()) return;
  const auto rows = listed();
  if (rows.empty()) return;
  const auto found = std::ranges::find(rows, selected_, &ProcessFigures::row);
  const std::ptrdiff_t now = found != rows.end() ? found - rows.begin() : 0;
  const auto next = std::clamp<std::ptrdiff_t>(now + by, 0, static_cast<std::ptrdiff_t>(rows.size()) - 1);
  selected_ = rows[static_cast<std::size_t>(next)]->row();
}

void View::sort_by_next(std::ptrdiff_t by) {
  const auto names = sort_names();
  const auto count = static_cast<std::ptrdiff_t>(names.size());
  const auto found = std::ranges::find(names, options_.sorted_by != nullptr ? name_of(*options_.sorted_by) : "");
  const std::ptrdiff_t now = found != names.end() ? found - names.begin() : 0;
  options_.sorted_by = column_named(names[static_cast<std::size_t>((now + by + count) % count)]);
}

/// The processes of the interval that the filter lets through: by name or pid.
std::vector<const ProcessFigures*> View::listed() const {
  const auto filtered = [&](std::vector<const ProcessFigures*> rows) {
    std::erase_if(rows, [&](const ProcessFigures* row) {
      return !escaped(row->comm).contains(options_.filter) &&
             (row->index == 0 || !std::to_string(row->pid).contains(options_.filter));
    });
    return sorted(std::move(rows), options_.sorted_by);
  };
  if (opened_ != 0) return filtered(interval().rows_of(opened_));
  auto rows = options_.by_process ? std::vector<const ProcessFigures*>() : filtered(interval().rows());
  // A pid may be that of a process of a program with many.
  return rows.empty() ? filtered(interval().single_rows()) : rows;
}

}  // namespace rtev::top
