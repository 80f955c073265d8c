// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "analysis/profile/profile_sink.hpp"
#include "analysis/profile/profile_words.hpp"
#include "base/folding.hpp"
#include "base/text_table.hpp"
#include "stream/program_key.hpp"

namespace rtev {
namespace {

/// It fits a terminal.
constexpr std::size_t max_functions = 10, max_rows_full = 200;
constexpr std::size_t function_width = 44, group_width = 36, line_width = 26;
/// With a column more.
constexpr std::size_t called_width = 22, narrow_function_width = 30, narrowest_function_width = 24,
                      narrow_line_width = 20;
/// With the file behind the line.
constexpr std::size_t binary_width = 42, narrow_binary_width = 32;

class ProfileText {
 public:
  explicit ProfileText(const ProfileReport& report) : report_(report), tree_(report.tree) {}

  std::string text() {
    if (sum_of(report_.all).samples == 0) {
      add_no_samples(out_, report_);
    } else {
      first_sentence();
      second_sentence();
      table();
      const std::string missing = notes();
      paths(static_cast<std::size_t>(std::ranges::count(missing, '\n')));
      out_.add(std::string_view(missing));
    }
    return std::string{out_.text()};
  }

 private:
  using Table = TextTable;
  static constexpr auto left = TextTable::Align::left;

  void line(std::string_view text) { out_.add(std::string_view(folded(text, 0, 0)), '\n'); }
  std::uint64_t whole(SampleSide side) const { return report_.all[static_cast<std::size_t>(side)].weight; }
  /// Of few samples how many these are.
  std::string share(const SampleValue& value, const SampleValue& of) const {
    if (report_.has_few()) return fmt::format("{}", Grouped{value.samples});
    return fmt::format("{}", Percent{value.weight, of.weight});
  }
  std::string_view what() const { return report_.kind == SampleKind::off_cpu ? "time off CPU" : "CPU time"; }

  /// "in spans "request" of 20ms and longer".
  std::string condition() const {
    const SpanCondition& in = *report_.in;
    TextBuffer text;
    if (in.pattern == pause_pattern) {
      text.add("in GC pauses");
    } else {
      print(text, "in spans {}", Quoted{in.pattern});
    }
    if (in.min_ns > 0) print(text, " of {} and longer", Duration{in.min_ns});
    return std::string(text.text());
  }

  /// Where the time goes.
  void first_sentence() {
    if (report_.in && report_.shown(report_.all).samples == 0) {
      TextBuffer text;
      print(text, "no samples {}", condition());
      std::string_view separator = "; there are spans ";
      for (const std::string& name : report_.other_names) {
        print(text, "{}{}", separator, Quoted{name});
        separator = ", ";
      }
      return line(text.text());
    }
    const ProfileHottest& hottest = report_.hottest;
    const SampleValue& value = report_.shown(hottest.value);
    TextBuffer text;
    if (report_.has_few()) {
      if (report_.in) print(text, "{}: ", condition());
      add_few(text, report_);
      text.add(std::string_view(where_hottest(report_)));
    } else if (report_.in) {
      print(text, "{}: {} of the {} is {}", condition(), share(value, report_.shown(report_.all)), what(),
            where_hottest(report_));
      const auto others = static_cast<std::size_t>(SampleSide::others);
      print(text, "; elsewhere {}", share(hottest.value[others], report_.all[others]));
    } else if (report_.kind == SampleKind::off_cpu) {
      print(text, "{} of the {} was spent {}", share(value, report_.all[0]), what(), where_hottest(report_));
    } else {
      const ProfileMain& main = report_.main;
      // The leaf with most time may be a small part of what one function does.
      const std::uint64_t whole = report_.all[0].weight;
      if (value.weight < whole / 2 && main.total.weight > value.weight + whole / 10) {
        print(text, "{} of the {} is in {} and what it calls", share(main.total, report_.all[0]), what(),
              PlaceName{.tree = tree_, .place = main.place, .with_binary = true});
        if (main.caller) print(text, ", called from {}", PlaceName{tree_, *main.caller});
        print(text, "; {} is {}", share(value, report_.all[0]), where_hottest(report_));
      } else {
        print(text, "{} of the {} is {}", share(value, report_.all[0]), what(), where_hottest(report_));
      }
    }
    line(text.text());
  }

  /// What the figures rest on.
  void second_sentence() {
    const SampleValue all = sum_of(report_.all);
    TextBuffer text;
    print(text, "{}", Counted{all.samples, "sample", "samples"});
    std::uint64_t processes = 0;
    const ProfileProcess* only = nullptr;
    std::set<std::string_view> programs;
    for (const ProfileProcess& process : report_.processes) {
      if (process.value.samples == 0 || process.pid == 0) continue;
      ++processes;
      only = &process;
      programs.insert(process.program);
    }
    if (processes == 1) {
      print(text, " of {}", ProcessName{only->comm, only->pid});
    } else if (processes > 1) {
      print(text, " of {} processes", Grouped{processes});
      // Else the name of one process would be as good as that of another one.
      if (programs.size() == 1) {
        print(text, " of {}", Escaped{only->comm});
      } else if (processes > max_single_processes) {
        print(text, " of {} programs", Grouped{programs.size()});
      }
    }
    print(text, " in {}", Duration{report_.end_ns - report_.start_ns});
    if (report_.unit == WeightUnit::ns) print(text, ", {} of {}", Duration{all.weight}, what());
    if (report_.gc.samples > 0)
      print(text, ", {} of {} in the GC",
            report_.has_few() ? fmt::format("{}", Grouped{report_.gc.samples}) : share(report_.gc, all),
            report_.has_few() ? "the samples" : "it");
    if (report_.kind == SampleKind::off_cpu) text.add("; short sleeps are left out (--off-cpu)");
    if (report_.in) {
      const std::uint64_t inside = report_.shown(report_.all).samples;
      print(text, "; {} of them inside", Grouped{inside});
      constexpr std::uint64_t enough = 100;
      if (inside > 0 && inside < enough) text.add(": so few that differences of some percent are chance");
    }
    line(text.text());
  }

  void table() {
    if (report_.shown(report_.all).samples == 0) return;
    out_.add('\n');
    if (report_.in) return comparison();
    if (report_.by == ProfileBy::function) return rows(report_.functions, "functions");
    if (report_.by == ProfileBy::line) return rows(report_.lines, "lines");
    groups();
  }

  std::size_t limit(std::size_t count) const { return std::min(count, report_.full ? max_rows_full : max_functions); }

  void rest(Table& table, std::size_t shown, std::size_t count, std::string_view what) const {
    if (shown == count) return;
    const std::string_view one = what.substr(0, what.size() - 1);
    table.line(fmt::format("and {} more {}", Grouped{count - shown}, count - shown == 1 ? one : what));
  }

  void rows(const std::vector<ProfileRow>& all, std::string_view what) {
    Table table;
    table.column("SELF", 5).column("TOTAL", 0);
    const bool has_gc = report_.gc.samples > 0;
    if (has_gc) table.column("GC", 0);
    table.column("SAMPLES", 0).column("FUNCTION", 0, left).column("PLACE", 0, left);
    const bool has_called = std::ranges::any_of(all, [](const ProfileRow& row) { return row.called != 0; });
    if (has_called) table.column("WAITS IN", 0, left);
    // What starts a program is on every stack, and says nothing.
    std::vector<const ProfileRow*> shown;
    for (const ProfileRow& row : all) {
      const ProfileFunction& function = report_.tree.functions()[report_.tree.places()[row.place].function];
      const bool is_known = function.kind == FrameKind::ocaml && !function.file.empty();
      if (report_.full || sum_of(row.self).samples > 0 || is_known) shown.push_back(&row);
    }
    const std::size_t count = limit(shown.size());
    shown.resize(count);
    PlaceWidths widths;
    if (has_called) widths = {has_gc ? narrowest_function_width : narrow_function_width, narrow_line_width};
    if (std::ranges::any_of(shown, [&](const ProfileRow* row) { return has_binary(*row); }))
      widths = {narrowest_function_width, has_called ? narrow_binary_width : binary_width};
    const SampleValue whole = sum_of(report_.all);
    for (std::size_t i = 0; i < count; ++i) {
      const ProfileRow& row = *shown[i];
      table.row();
      table.cell(share(sum_of(row.self), whole));
      table.cell(share(sum_of(row.total), whole));
      if (has_gc) table.cell(row.gc.samples > 0 ? share(row.gc, whole) : std::string());
      table.cell(sum_of(row.self).samples);
      place(table, row.place, widths);
      if (has_called) table.cell(row.called != 0 ? function_cell(tree_, row.called, called_width) : std::string());
    }
    rest(table, count, all.size(), what);
    table.write(out_);
  }

  struct PlaceWidths {
    std::size_t function = function_width, line = line_width;
  };
  bool has_binary(const ProfileRow& row) const { return !tree_.binary_of(row.place).empty(); }

  void place(Table& table, CallTree::Index place, const PlaceWidths& widths) const {
    table.cell(function_cell(tree_, place, widths.function));
    table.cell(place_cell(tree_, place, widths.line));
  }

  void comparison() {
    Table table;
    table.column("INSIDE", 6).column("ELSEWHERE", 0).column("N INSIDE", 0).column("N ELSEWHERE", 0);
    table.column("FUNCTION", 0, left).column("PLACE", 0, left);
    constexpr auto inside = static_cast<std::size_t>(SampleSide::inside), others = std::size_t{0};
    const auto& rows = report_.by == ProfileBy::line ? report_.lines : report_.functions;
    // What is on all stacks, here and there, explains nothing.
    const auto differs = [&](const ProfileRow& row) {
      return share(row.total[inside], report_.all[inside]) != share(row.total[others], report_.all[others]);
    };
    std::vector<ProfileRow> all;
    std::ranges::copy_if(rows, std::back_inserter(all),
                         [&](const ProfileRow& row) { return report_.full || differs(row); });
    const std::size_t count = limit(all.size());
    PlaceWidths widths;
    if (std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count),
                    [&](const ProfileRow& row) { return has_binary(row); }))
      widths = {narrowest_function_width, narrow_binary_width};
    for (std::size_t i = 0; i < count; ++i) {
      const ProfileRow& row = all[i];
      table.row();
      table.cell(share(row.total[inside], report_.all[inside]));
      table.cell(share(row.total[others], report_.all[others]));
      table.cell(row.total[inside].samples);
      table.cell(row.total[others].samples);
      place(table, row.place, widths);
    }
    rest(table, count, rows.size(), report_.by == ProfileBy::line ? "lines" : "functions");
    table.write(out_);
  }

  std::string_view group_title() const {
    static constexpr std::string_view titles[]{"FUNCTION", "LINE", "DOMAIN", "PROCESS", "PROGRAM", "PHASE", "SPAN"};
    return titles[static_cast<std::size_t>(report_.by)];
  }

  void groups() {
    Table table;
    table.column("SHARE", 5).column("SAMPLES", 0).column(group_title(), 0, left).column("MOSTLY IN", 0, left);
    const std::size_t count = limit(report_.groups.size());
    const SampleValue whole = sum_of(report_.all);
    for (std::size_t i = 0; i < count; ++i) {
      const ProfileGroup& group = report_.groups[i];
      table.row();
      table.cell(share(group.value, whole));
      table.cell(group.value.samples);
      table.cell(cut_middle(escaped(group.name), group_width));
      if (group.hottest == 0) continue;
      table.cell(fmt::format("{} ({})", function_cell(tree_, group.hottest, function_width - 6),
                             share(group.in_hottest, group.value)));
    }
    rest(table, count, report_.groups.size(), "rows");
    table.write(out_);
  }

  /// `reserved`: lines that follow.
  void paths(std::size_t reserved) {
    if (report_.shown(report_.all).samples == 0) return;
    if (report_.full) {
      out_.add(report_.in ? std::string_view("\nfrom caller to callee, of the samples inside:\n")
                          : std::string_view("\nfrom caller to callee:\n"));
      return add_call_tree(out_, report_);
    }
    out_.add("\nthe hottest path:\n");
    add_hottest_path(out_, report_, lines_for_path(out_, reserved));
  }

  std::string notes() const {
    TextBuffer text;
    add_sample_notes(text, report_);
    const bool needs_phases = report_.by == ProfileBy::gc_phase || (report_.in && report_.in->pattern == pause_pattern);
    if (needs_phases && !report_.has_pauses) text.add("no runtime events: what was in the GC is unknown\n");
    return std::string(text.text());
  }

  const ProfileReport& report_;
  const CallTree& tree_;
  TextBuffer out_;
};

}  // namespace

std::string profile_text(const ProfileReport& report) {
  return ProfileText{report}.text();
}

}  // namespace rtev
