// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <iterator>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/diff/diff_report.hpp"
#include "analysis/report_text.hpp"
#include "base/folding.hpp"
#include "base/text_table.hpp"

namespace rtev {
namespace {

/// Of the default report, which fits a terminal: of its lines some are the shell's.
constexpr std::size_t max_lines = 22;
constexpr std::size_t name_width = 44;
/// With several programs, so many have their sentences; the first one has a table, too.
constexpr std::size_t max_programs = 5;

/// "12.3", "0.0517", "1,234".
std::string number_text(double value) {
  if (value >= 1000) return fmt::format("{}", Grouped{static_cast<std::uint64_t>(std::llround(std::min(value, 1e18)))});
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::uint64_t whole(double value) {
  constexpr double most = 1e18;  // figures of a recording may be anything
  return static_cast<std::uint64_t>(std::llround(std::clamp(value, 0.0, most)));
}

std::size_t lines_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

/// "time in GC 4.1% to 9.8% (2.4 times)"
std::string change_sentence(const DiffFigure& figure) {
  return fmt::format("{} {} to {} ({})", Escaped{figure.name}, value_text(figure.unit, figure.a),
                     value_text(figure.unit, figure.b), change_text(figure));
}

class Report {
 public:
  explicit Report(const DiffReport& report) : report_(report) {}

  std::string text() {
    TextBuffer end;
    remarks(end);
    const auto& programs = report_.programs;
    const std::size_t shown = report_.full ? programs.size() : std::min(programs.size(), max_programs);
    TextBuffer heads;
    for (std::size_t i = 0; i < shown; ++i) {
      if (report_.full) {
        if (i > 0) heads.add('\n');
        head(heads, programs[i], 3);
        table(heads, programs[i], SIZE_MAX);
      } else {
        head(heads, programs[i], programs.size() == 1 ? 3 : 1);
      }
    }
    if (shown < programs.size()) print(heads, "and {} more programs (--full)\n", programs.size() - shown);
    if (programs.empty()) heads.add("no program has events in both recordings\n");
    const std::size_t used = lines_of(heads.text()) + lines_of(end.text());
    // A table has two lines more, and a remark below it.
    constexpr std::size_t around = 4;
    if (!report_.full && !programs.empty() && used + around < max_lines)
      table(heads, programs.front(), max_lines - used - around);
    heads.add(end.text());
    return std::string{heads.text()};
  }

 private:
  static void add_folded(TextBuffer& out, const std::string& line, std::size_t indent) {
    out.add_repeated(' ', indent);
    out.add(folded(line, indent, indent + 2), '\n');
  }

  static std::string title(const DiffProgram& program) {
    if (program.name_a == program.name_b) return fmt::format("{}", Escaped{program.name_a});
    return fmt::format("{} in A, {} in B", Escaped{program.name_a}, Escaped{program.name_b});
  }

  static std::string verdict_text(const DiffProgram& program) {
    const std::string_view verdict = program.verdict();
    if (verdict == "worse") return "B is worse than A";
    if (verdict == "better") return "B is better than A";
    if (verdict == "mixed") return "B is worse than A in some figures, and better in others";
    if (verdict == "changed") return "B differs from A, and is neither better nor worse";
    if (verdict == "same")
      return program.count(DiffVerdict::small) > 0 ? "only small changes" : "no significant change";
    return "not compared: " + program.why_not;
  }

  /// The answer in words.
  static void head(TextBuffer& out, const DiffProgram& program, std::size_t most) {
    out.add(folded(title(program) + ": " + verdict_text(program), 0, 2), '\n');
    const bool has_symptoms = sentence(out, program, DiffRole::symptom, most, "");
    std::string settings;
    for (const DiffSetting& setting : program.settings)
      settings += fmt::format("{}{} {} to {}", settings.empty() ? "" : "; ", setting.name, Escaped{setting.a},
                              Escaped{setting.b});
    if (!settings.empty()) add_folded(out, "set differently: " + settings, 2);
    sentence(out, program, DiffRole::cause, most, has_symptoms ? "perhaps because of: " : "");
    if (program.has_other_load)
      add_folded(out,
                 "its threads waited longer for CPUs that others had: what that explains is no regression "
                 "(--fail-on-regression)",
                 2);
  }

  /// The changes of a role that are listed first. False if there are none.
  static bool sentence(TextBuffer& out, const DiffProgram& program, DiffRole role, std::size_t most,
                       std::string_view prefix) {
    std::string text;
    for (const DiffFigure& figure : program.figures) {
      if (figure.role != role || !figure.changed()) continue;
      if (role == DiffRole::cause && figure.verdict == DiffVerdict::better && program.verdict() == "worse") continue;
      if (most-- == 0) break;
      text += (text.empty() ? std::string(prefix) : "; ") + change_sentence(figure);
    }
    if (!text.empty()) add_folded(out, text, 2);
    return !text.empty();
  }

  void table(TextBuffer& out, const DiffProgram& program, std::size_t most) const {
    if (!program.why_not.empty() && !report_.full) return;
    TextTable table(2);
    table.column("", 0, TextTable::Align::left).column("FIGURE", 0, TextTable::Align::left);
    for (const std::string_view column : {"A", "B", "CHANGE"}) table.column(column, 9);
    if (report_.full) table.column("P", 8);
    std::size_t rows = 0;
    for (const DiffFigure& figure : program.figures) {
      if (!report_.full && !figure.changed()) continue;
      if (rows == most) break;
      ++rows;
      table.row();
      table.cell(figure.verdict == DiffVerdict::too_few ? "?"
                 : figure.verdict == DiffVerdict::same  ? ""
                                                        : to_string(figure.verdict));
      table.cell(cut_middle(escaped(figure.name), name_width));
      table.cell(value_text(figure.unit, figure.a));
      table.cell(value_text(figure.unit, figure.b));
      table.cell(change_text(figure));
      constexpr double least_p = 1e-4;
      if (report_.full) table.cell(!figure.p ? "-" : *figure.p < least_p ? "<1e-4" : fmt::format("{:.2g}", *figure.p));
    }
    if (rows > 0) {
      out.add('\n');
      table.write(out);
    }
    below(out, program, rows);
  }

  void below(TextBuffer& out, const DiffProgram& program, std::size_t rows) const {
    const std::size_t same = program.count(DiffVerdict::same), few = program.count(DiffVerdict::too_few),
                      small = program.count(DiffVerdict::small);
    const std::size_t changed = program.figures.size() - same - few - small;
    TextBuffer line;
    if (!report_.full && rows < changed) print(line, "{}, ", Counted{changed - rows, "more change", "more changes"});
    if (changed > 0) {
      print(line, "no significant change in {}", Counted{same, "other figure", "other figures"});
    } else {
      print(line, "no significant change in {}", Counted{same, "figure", "figures"});
    }
    if (small > 0) print(line, ", a small one in {}", small);
    if (few > 0) print(line, ", too few values to tell in {}", few);
    if (report_.full) {
      if (few > 0) line.add(" (?)");
      print(line, "; P: how likely noise alone differs as much");
    } else {
      line.add(" (--full)");
    }
    print(line, "; both cut into slices of {}: {} of A, {} of B", Duration{program.slice_ns}, program.a.slices,
          program.b.slices);
    add_folded(out, std::string(line.text()), 2);
  }

  /// "one, two and 3 more"
  static std::string list_of(const std::vector<std::string>& names) {
    constexpr std::size_t most = 8;
    std::string text;
    for (const std::string& name : names | std::views::take(most)) text += (text.empty() ? "" : ", ") + escaped(name);
    return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
  }

  /// What of a recording the figures are of: all processes of the programs that are in both.
  void compared(TextBuffer& out, bool is_a) const {
    const std::vector<DiffProgram>& programs = report_.programs;
    std::uint64_t processes = 0, longest_ns = 0;
    for (const DiffProgram& program : programs) {
      const DiffSide& side = is_a ? program.a : program.b;
      processes += side.processes;
      longest_ns = std::max(longest_ns, side.longest_pause_ns);
    }
    print(out, ", {}", Counted{processes, "process", "processes"});
    if (programs.size() > 1)
      print(out, " of the {} programs in both", programs.size());
    else if (!(is_a ? report_.only_a : report_.only_b).empty())
      print(out, " of {}", Escaped{is_a ? programs.front().name_a : programs.front().name_b});
    if (longest_ns > 0) print(out, ", longest pause {}", Duration{longest_ns});
  }

  void remarks(TextBuffer& out) const {
    for (const auto& [name, run] : {std::pair{"A", &report_.a}, {"B", &report_.b}}) {
      TextBuffer line;
      print(line, "{}: {}", name, Escaped{run->file.empty() ? "a recording" : std::string_view(run->file)});
      print(line, ", {}", Duration{run->end_ns - std::min(run->end_ns, run->start_ns)});
      if (report_.a.host != report_.b.host || report_.a.kernel != report_.b.kernel)
        print(line, ", of {} ({})", Escaped{run->host}, Escaped{run->kernel});
      if (!report_.programs.empty()) compared(line, name[0] == 'A');
      if (!run->scheduler_seen) line.add(", without scheduler events");
      if (const std::string left_out = run->not_recorded.text(); !left_out.empty()) print(line, "; {}", left_out);
      out.add(folded(line.text(), 0, 2), '\n');
    }
    for (const auto& [name, only, off, other, run] :
         {std::tuple{"A", &report_.only_a, &report_.off_in_b, "B", &report_.b},
          {"B", &report_.only_b, &report_.off_in_a, "A", &report_.a}}) {
      std::vector<std::string> alone;
      std::ranges::set_difference(*only, *off, std::back_inserter(alone));
      if (!alone.empty()) {
        std::string text = fmt::format("only in {}: {}", name, list_of(alone));
        if (run->not_recorded.has(EventKind::process))
          text += fmt::format("; unknown of {}, which did not record starts and ends of processes", other);
        out.add(folded(text, 0, 2), '\n');
      }
      if (!off->empty())
        out.add(
            folded(fmt::format("only {} has events of {}; it ran in {} with events off", name, list_of(*off), other), 0,
                   2),
            '\n');
    }
    TextBuffer lines;
    warnings(lines);
    add_lines(out, lines.text());
  }

  void warnings(TextBuffer& out) const {
    for (const auto& [name, run] : {std::pair{"A", &report_.a}, {"B", &report_.b}}) {
      if (run->scheduler_dropped > 0)
        print(out, "warning: {} lacks {}; that time is left out of CPU figures\n", name,
              Counted{run->scheduler_dropped, "scheduler event", "scheduler events"});
      if (run->rings_missed > 0) print(out, "warning: {} lacks {}\n", name, rings_missed(run->rings_missed));
      if (run->processes_left_out > 0)
        print(out, "warning: {} has too many programs: {} left out\n", name,
              Counted{run->processes_left_out, "process is", "processes are"});
    }
    for (const DiffProgram& program : report_.programs) {
      for (const auto& [name, side] : {std::pair{"A", &program.a}, {"B", &program.b}}) {
        if (!side->lost.any()) continue;
        print(out, "warning: {} lacks events of {}: {}; {:.0f}% of its time is left out\n", name,
              Escaped{program.name_a}, side->lost.text(), side->lossy_share * 100);
      }
      if (program.lacks_room)
        print(out, "warning: too many different durations, spans or stacks of {}: some are left out\n",
              Escaped{program.name_a});
    }
  }

  const DiffReport& report_;
};

}  // namespace

std::string value_text(DiffUnit unit, double value) {
  switch (unit) {
    case DiffUnit::ns:
      return fmt::format("{}", Duration{whole(value)});
    case DiffUnit::share:
      return number_text(value * 100) + "%";
    case DiffUnit::per_second:
      return number_text(value) + "/s";
    case DiffUnit::bytes:
      return fmt::format("{}", Size{whole(value)});
    case DiffUnit::bytes_per_second:
      return fmt::format("{}/s", Size{whole(value)});
    case DiffUnit::number:
      break;
  }
  return number_text(value);
}

std::string change_text(const DiffFigure& figure) {
  if (figure.a <= 0) return figure.b > 0 ? "new" : "-";
  if (figure.b <= 0) return "gone";
  const double ratio = figure.b / figure.a;
  constexpr double factor = 2, many = 1000;
  if (ratio > many) return fmt::format("> {:.0f} times", many);
  if (ratio >= factor) return fmt::format("{:.1f} times", ratio);
  const auto percent = std::lround((ratio - 1) * 100);
  return percent == 0 ? "0%" : fmt::format("{:+}%", percent);
}

std::string diff_text(const DiffReport& report) {
  return Report{report}.text();
}

}  // namespace rtev
