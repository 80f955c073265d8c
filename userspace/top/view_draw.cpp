// SPDX-License-Identifier: MIT
// The screens of a View.
#include <algorithm>
#include <ranges>

#include "base/folding.hpp"
#include "base/text_format.hpp"
#include "base/utf8.hpp"
#include "top/interval_text.hpp"
#include "top/view.hpp"

namespace rtev::top {
namespace {

constexpr std::size_t minute = 60;  ///< intervals, of a second as a rule
constexpr std::size_t least_line = 10, wide_line = 26, greatest_line = minute;
constexpr std::size_t narrow = 60, wide = 110;  ///< columns of a screen
constexpr std::size_t least_height = 16;        ///< for sentences of several lines

std::string aligned(const Column& column, const std::string& text) {
  const std::string blanks(column.width - std::min(column.width, columns_of(text)), ' ');
  return column.is_text ? text + blanks : blanks + text;
}

std::string plain_percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f}", *share * 100) : "-";
}

/// A line in as many as the width of the screen needs.
void add_folded(Lines& lines, std::string_view text, std::size_t width, std::size_t indent) {
  constexpr std::size_t least_width = 20;
  const std::string all = folded(text, 0, indent, std::max(width, least_width));
  for (const auto line : std::views::split(all, '\n')) lines.emplace_back(std::string(std::string_view(line)));
}

}  // namespace

Lines View::draw(std::size_t width, std::size_t height) {
  Lines lines;
  lines.push_back(title(width));
  if (screen_ == Screen::help) {
    add_scrolled(lines, help(width), height);
  } else if (history_.empty()) {
    lines.emplace_back("looking for OCaml processes ...");
  } else if (screen_ == Screen::process) {
    draw_process(lines, width, height);
  } else {
    draw_list(lines, width, height);
  }
  lines.resize(height > 0 ? height - 1 : 0);
  if (height > 0) lines.push_back(last_line());
  for (Line& line : lines) line.cut(width);
  return lines;
}

Line View::title(std::size_t width) const {
  constexpr std::size_t max_name = 30, least_name = 8;
  if (history_.empty()) return Line("rtev-bpf top", Style::bold);
  const std::size_t last = history_.size() - 1;
  std::string state;
  if (!is_live()) {
    state = fmt::format("{} of {}{}", at_ + 1, last + 1,
                        is_paused_              ? ", paused"
                        : at_ >= last_to_show() ? ", at its end"
                                                : "");
  } else if (is_paused_) {
    state =
        at_ == last ? "paused" : fmt::format("paused {} ago", Duration{history_[last].time_ns - interval().time_ns});
  }
  Line rest;
  if (!state.empty()) rest.add("  ").add("[" + state + "]", Style::bold);
  rest.add(fmt::format("  {}  {}", time_text(interval()), totals_text(interval())));
  // Where there is little room, the figures count.
  const std::size_t room = width - std::min(width, rest.columns());
  Line line(room > std::string_view("rtev-bpf top").size() ? "rtev-bpf top" : "top", Style::bold);
  const std::size_t left = room - std::min(room, line.columns() + 1);
  if (!is_live() && left >= least_name) line.add(" " + cut_middle(options_.input, std::min(max_name, left)));
  for (const Piece& piece : rest.pieces()) line.add(piece.text, piece.style);
  return line;
}

Line View::last_line() const {
  if (edits_filter_)
    return Line("filter by name or pid: " + options_.filter + "_   (Enter keeps it, Esc does not)", Style::bold);
  if (!message_.empty()) return Line(message_, Style::bold);
  std::string keys = screen_ == Screen::list
                         ? "Enter details  s sort  / filter  p pause  <- -> time  d record  h help  q quit"
                         : "Esc back  up/down scroll  p pause  <- -> time  d record  h help";
  if (!is_live()) keys.erase(keys.find("d record  "), 10);
  Line line;
  if (screen_ == Screen::list && opened_ != 0 && !history_.empty()) {
    const auto rows = interval().rows_of(opened_);
    line.add(fmt::format("{}{}  ", rows.empty() ? std::string() : escaped(rows.front()->comm) + ", ",
                         Counted{rows.size(), "process", "processes"}),
             Style::bold);
    keys.insert(0, "Esc back  ");
  }
  if (!options_.filter.empty())
    line.add(fmt::format("filter: {} ({} of {})  ", options_.filter, history_.empty() ? 0 : listed().size(),
                         history_.empty() ? 0 : interval().processes.size()),
             Style::bold);
  return line.add(keys, Style::dim);
}

void View::draw_list(Lines& lines, std::size_t width, std::size_t height) {
  Lines cause;
  add_folded(cause, interval().worst.empty() ? "no pause in this time" : "longest pause: " + interval().worst, width,
             2);
  // Where there is little room, the beginning has to do.
  if (height < least_height) cause.resize(1);
  lines.insert(lines.end(), cause.begin(), cause.end());
  constexpr std::size_t mark = 1;  // of the selected row
  const std::size_t wanted_line = width < narrow ? 0 : width < wide ? least_line : wide_line;
  const std::vector<const Column*> columns =
      columns_within(width - std::min(width, mark + 1 + wanted_line), options_.sorted_by);
  std::size_t used = mark;
  for (const Column* const column : columns) used += 1 + column->width;
  const std::size_t line_width = std::min(greatest_line, width - std::min(width, used + 1));
  lines.push_back(titles(columns, line_width));
  lines.back().pad(width, Style::title);

  const auto rows = listed();
  const std::size_t room = height > lines.size() + 1 ? height - lines.size() - 1 : 1;
  const auto found = std::ranges::find(rows, selected_, &ProcessFigures::row);
  const auto at = static_cast<std::size_t>(found != rows.end() ? found - rows.begin() : 0);
  if (found == rows.end()) selected_ = 0;
  first_shown_ = std::clamp(first_shown_, at >= room ? at - room + 1 : 0, at);
  for (std::size_t i = first_shown_; i < rows.size() && i < first_shown_ + room; ++i)
    lines.push_back(row(*rows[i], columns, line_width, i == at));
  if (rows.empty()) {
    lines.emplace_back(interval().processes.empty() ? "  no OCaml process with events runs now: rtev-bpf ps lists all"
                                                    : "  no process matches the filter");
  }
}

Line View::titles(const std::vector<const Column*>& columns, std::size_t line_width) const {
  Line line(" ", Style::title);
  for (const Column* const column : columns) {
    std::string text = " " + aligned(*column, std::string(column->title));
    // The arrow takes the place of the blank before the title.
    if (column == options_.sorted_by) text.replace(text.find_first_not_of(' ') - 1, 1, "▼");
    line.add(std::move(text), Style::title);
  }
  if (line_width >= least_line)
    line.add(line_width >= wide_line ? " WORST PAUSE, LAST MINUTE" : " LAST MIN", Style::title);
  return line;
}

Line View::row(const ProcessFigures& process, const std::vector<const Column*>& columns, std::size_t line_width,
               bool is_selected) const {
  const Style style = is_selected ? Style::selected : Style::plain;
  const Style alarm = is_selected ? Style::selected_alarm : Style::alarm;
  Line line(is_selected ? ">" : " ", style);
  for (const Column* const column : columns) {
    // The mark of an alarming cell lies in the blank after it, so that the figures stay aligned.
    const bool alarms = is_alarming(*column, process);
    line.add(line.pieces().back().text == "!" ? "" : " ", style);
    line.add(aligned(*column, column->cell(process)), alarms ? alarm : style);
    if (alarms) line.add("!", alarm);
  }
  if (line_width >= least_line) {
    if (line.pieces().back().text != "!") line.add(" ", style);
    line.add(history_.pauses_line(process, at_, minute, line_width), style);
  }
  return line;
}

void View::draw_process(Lines& lines, std::size_t width, std::size_t height) {
  const auto index = static_cast<ProcessIndex>(selected_);
  const ProcessFigures* const process = interval().find(index);
  if (process == nullptr) {
    lines.emplace_back("the process has ended, or was not there yet; Esc: back to the list");
    return;
  }
  if (!details_) {
    if (const ProcessDetails* const kept = interval().details_of(index)) {
      details_ = *kept;
    } else if (options_.details && at_ + 1 == history_.size()) {
      details_ = options_.details(index);
    }
  }
  add_scrolled(lines, process_lines(*process, width), height);
}

/// Between the title and the last line.
void View::add_scrolled(Lines& lines, const Lines& all, std::size_t height) {
  const std::size_t room = height > 3 ? height - 2 : 1;
  scrolled_ = std::min(scrolled_, all.size() > room ? all.size() - room : 0);
  lines.insert(lines.end(), all.begin() + static_cast<std::ptrdiff_t>(scrolled_), all.end());
}

Lines View::process_lines(const ProcessFigures& process, std::size_t width) const {
  Lines lines;
  std::string head = fmt::format("{}/{}", Escaped{process.comm}, process.pid);
  if (!process.version.empty()) head += fmt::format(", OCaml {}", Escaped{process.version});
  lines.push_back(Line(head, Style::bold).add(fmt::format(", {}", Counted{process.domains, "domain", "domains"})));
  Line figures;
  for (const Column& column : all_columns()) {
    if (column.rank == 0 && column.title != "WORST") continue;
    const bool alarms = is_alarming(column, process);
    const std::string text = fmt::format("{} {}", column.title, cell_of(column, process));
    if (figures.columns() + columns_of(text) + 3 > width) lines.push_back(std::exchange(figures, Line()));
    figures.add(figures.pieces().empty() ? "" : "   ").add(text, alarms ? Style::alarm : Style::plain);
  }
  lines.push_back(std::move(figures));
  const std::size_t line_width = std::min(greatest_line, width - std::min<std::size_t>(width, 16));
  lines.push_back(Line("worst pause   ", Style::dim).add(history_.pauses_line(process, at_, minute, line_width)));
  if (process.heap_bytes)
    lines.push_back(Line("heap          ", Style::dim).add(history_.heap_line(process.index, at_, minute, line_width)));
  if (!details_) {
    lines.emplace_back();
    lines.emplace_back("details are shown of now only: p goes on");
    return lines;
  }

  if (!details_->domains.empty()) {
    lines.emplace_back();
    lines.emplace_back("DOMAINS SINCE THE START            WHAT EACH DOES NOW", Style::title);
    lines.back().pad(width, Style::title);
    lines.emplace_back("DOMAIN   GC%  PAUSES    WORST", Style::dim);
  }
  for (const DomainDetails& domain : details_->domains) {
    lines.emplace_back(
        fmt::format("{:>6} {:>5} {:>7} {:>8}      {}", domain.name, plain_percent(domain.gc_share), domain.pauses,
                    domain.worst_ns == 0 ? "-" : fmt::format("{}", Duration{domain.worst_ns}), domain.state));
  }
  if (!details_->causes.empty()) {
    lines.emplace_back();
    lines.emplace_back("LONGEST PAUSES SINCE THE START, BY CAUSE", Style::title);
    lines.back().pad(width, Style::title);
    for (const std::string& cause : details_->causes) add_folded(lines, "  " + cause, width, 6);
    add_folded(lines, "  the longest: " + details_->worst, width, 6);
  }
  if (!details_->tasks.empty()) {
    lines.emplace_back();
    lines.emplace_back("LONGEST RUNS OF FIBERS AND TASKS, WITHOUT LETTING OTHERS RUN", Style::title);
    lines.back().pad(width, Style::title);
    for (const std::string& run : details_->tasks) add_folded(lines, "  " + run, width, 6);
  }
  if (!details_->spans.empty()) {
    constexpr std::size_t span_width = 30;
    lines.emplace_back();
    lines.emplace_back(fmt::format("{:<{}} {:>9} {:>9} {:>9} {:>9}", "SPAN OF THE PROGRAM", span_width, "COUNT",
                                   "TOTAL", "P99", "MAX"),
                       Style::title);
    lines.back().pad(width, Style::title);
    for (const SpanDetails& span : details_->spans) {
      const std::string name = cut(span.name, span_width);
      lines.emplace_back(fmt::format(
          "{}{} {:>9} {:>9} {:>9} {:>9}", name, std::string(span_width - std::min(span_width, columns_of(name)), ' '),
          Grouped{span.count}, Duration{span.total_ns}, span.p99_ns ? fmt::format("{}", Duration{*span.p99_ns}) : "-",
          Duration{span.max_ns}));
    }
    if (details_->other_spans > 0)
      lines.emplace_back(fmt::format("and {}", Counted{details_->other_spans, "other name", "other names"}));
  }
  return lines;
}

Lines View::help(std::size_t width) {
  Lines lines;
  for (const auto& [keys, meaning] : std::initializer_list<std::pair<const char*, const char*>>{
           {"up, down, PgUp, PgDn, Home, End", "choose a process, or scroll"},
           {"Enter",
            "domains, causes of pauses and spans of the process, or the processes of a program of which there "
            "are many; Esc goes back"},
           {"s, S", "sort by the next column, by the one before"},
           {"/", "show processes whose name or pid contains a text; Esc shows all again"},
           {"p, space", "pause, go on"},
           {"<- ->", "go back and forth in time"},
           {"d", "write a recording of the last seconds"},
           {"q", "quit; in help and in details: go back"}})
    add_folded(lines, fmt::format("  {:<32} {}", keys, meaning), width, 35);
  lines.emplace_back();
  for (const Column& column : all_columns())
    add_folded(lines, fmt::format("  {:<9} {}", column.title, column.meaning), width, 12);
  lines.emplace_back();
  add_folded(lines, fmt::format("  longest pause in the last minute:  {}", pause_scale), width, 4);
  add_folded(lines, "  heap in the last minute: from its least size (▁) to its greatest (█)", width, 4);
  lines.emplace_back("  !  a value that is worth a look");
  return lines;
}

}  // namespace rtev::top
