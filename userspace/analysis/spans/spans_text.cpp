// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/place_text.hpp"
#include "analysis/report_text.hpp"
#include "analysis/spans/spans_report.hpp"
#include "base/escape.hpp"
#include "base/folding.hpp"
#include "base/text_table.hpp"
#include "stream/program_key.hpp"

namespace rtev {
namespace {

/// It fits a terminal.
constexpr std::size_t max_span_rows = 8, max_slowest = 3, span_name_width = 20;
constexpr std::size_t max_slowest_full = 20;

struct PartColumn {
  std::uint64_t SpanTime::* ns;
  std::string_view title, words;
};
constexpr std::array parts{
    PartColumn{&SpanTime::code, "CODE", "own code"},
    PartColumn{&SpanTime::gc, "GC", "GC work"},
    PartColumn{&SpanTime::domains, "GC WAIT", "blocked in the GC"},
    PartColumn{&SpanTime::no_cpu, "NO CPU", "waiting for a CPU"},
    PartColumn{&SpanTime::blocked, "BLOCKED", "blocked outside of the GC"},
};

class SpansText {
 public:
  explicit SpansText(const SpansReport& report) : report_(report), groups_(grouped(report)) {}

  std::string text() {
    if (report_.groups.empty()) {
      none();
    } else {
      sentences(groups_.front());
      table();
      slowest();
    }
    warnings();
    return std::string{out_.text()};
  }

 private:
  /// The spans of a name, of a process or of many ones of a program.
  struct Group {
    SpanGroup spans;
    std::uint64_t processes = 1;
  };

  /// Those of programs with many processes together. The one with most time first.
  static std::vector<Group> grouped(const SpansReport& report) {
    std::map<std::string_view, std::set<std::int32_t>> pids;
    for (const SpanGroup& group : report.groups) pids[group.comm].insert(group.pid);
    std::vector<Group> groups;
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> together;
    for (const SpanGroup& group : report.groups) {
      if (report.full || pids[group.comm].size() <= max_single_processes) {
        groups.push_back({.spans = group});
        continue;
      }
      const auto [place, is_first] = together.try_emplace({group.comm, group.name}, groups.size());
      if (is_first) {
        groups.push_back({.spans = group});
        continue;
      }
      Group& sum = groups[place->second];
      ++sum.processes;
      sum.spans.wall.merge(group.wall);
      sum.spans.time += group.time;
      sum.spans.slowest.insert(sum.spans.slowest.end(), group.slowest.begin(), group.slowest.end());
    }
    for (Group& group : groups) std::ranges::stable_sort(group.spans.slowest, std::greater{}, &Span::length_ns);
    std::ranges::stable_sort(groups, std::greater{}, [](const Group& group) { return group.spans.wall.total(); });
    return groups;
  }

  static std::string who(const Group& group) {
    if (group.processes > 1) return fmt::format("{} x{}", Escaped{group.spans.comm}, Grouped{group.processes});
    return fmt::format("{}", ProcessName{group.spans.comm, group.spans.pid});
  }

  void line(std::string_view text, std::size_t indent = 0) { out_.add(folded(text, 0, indent), '\n'); }

  void none() {
    if (report_.is_unknown()) {
      const std::string what = report_.not_recorded.text({EventKind::user_begin});
      return line("spans are unknown: " + (what.empty() ? why_none_read(report_.read_programs) : what), 2);
    }
    TextBuffer text;
    print(text, "no span is named {}", Quoted{report_.pattern});
    std::string_view separator = "; there are ";
    for (const std::string& name : report_.other_names) {
      print(text, "{}{}", separator, Quoted{name});
      separator = ", ";
    }
    if (report_.other_names.empty()) text.add("; no program wrote spans (Runtime_events.User, type span)");
    line(text.text());
  }

  void sentences(const Group& of) {
    const SpanGroup& group = of.spans;
    const Histogram& wall = group.wall;
    TextBuffer text;
    print(text, "{} {} of {}", Counted{wall.count(), "span", "spans"}, Quoted{group.name}, who(of));
    if (report_.min_ns > 0) print(text, " of {} and longer", Duration{report_.min_ns});
    print(text, " in {}", Duration{report_.end_ns - report_.start_ns});
    if (wall.count() > 0) {
      print(text, ": {}the longest {}", usual_text(wall), Duration{wall.max()});
    }
    line(text.text());
    if (report_.scheduler_seen && wall.count() > 0) what_makes_them_slow(group);
  }

  /// The hundredth of the spans that took longest: one at least.
  static std::pair<std::size_t, SpanTime> slow(const SpanGroup& group) {
    const std::size_t count =
        std::min<std::size_t>(group.slowest.size(), std::max<std::uint64_t>(group.wall.count() / 100, 1));
    SpanTime time;
    for (std::size_t i = 0; i < count; ++i) time += group.slowest[i].time;
    return {count, time};
  }

  void what_makes_them_slow(const SpanGroup& group) {
    const auto [count, time] = slow(group);
    const auto share = [](std::uint64_t part_ns, std::uint64_t whole_ns) {
      return whole_ns == 0 ? 0.0 : static_cast<double>(part_ns) / static_cast<double>(whole_ns);
    };
    const PartColumn* most = nullptr;
    double greatest = 0;
    for (const PartColumn& part : parts) {
      // What they have of it beyond what spans of their length would have as a rule.
      const double excess = share(time.*part.ns, time.total()) - share(group.time.*part.ns, group.time.total());
      if (!most || excess > greatest) {
        most = &part;
        greatest = excess;
      }
    }
    constexpr double notable = 0.1;
    if (greatest < notable) return;
    TextBuffer text;
    const bool is_one = count == 1;
    print(text, "why the slowest {} slow: {} for {} of {} time (all spans: {})",
          is_one ? std::string("one is") : fmt::format("{} are", Grouped{count}), most->words,
          Percent{time.*most->ns, time.total()}, is_one ? "its" : "their",
          Percent{group.time.*most->ns, group.time.total()});
    if (most->ns == &SpanTime::domains || most->ns == &SpanTime::gc) text.add("; rtev-bpf pauses says why");
    line(text.text());
  }

  /// All of the first group, and its slowest ones; a row for each further group.
  void table() {
    TextTable table;
    const bool is_single = std::ranges::all_of(
        report_.groups, [&](const SpanGroup& group) { return group.pid == report_.groups.front().pid; });
    table.column("SPAN", 0, TextTable::Align::left);
    if (!is_single) table.column("PROCESS", 0, TextTable::Align::left);
    for (const std::string_view title : {"COUNT", "TOTAL"}) table.column(title, 0);
    for (const double percentile : percentiles()) table.column(fmt::format("P{}", percentile), 0);
    table.column("MAX", 0);
    if (report_.scheduler_seen) {
      for (const PartColumn& part : parts) table.column(part.title, 0);
    }
    const std::size_t rows = std::min(groups_.size(), report_.full ? groups_.size() : max_span_rows);
    for (std::size_t i = 0; i < rows; ++i) {
      const SpanGroup& group = groups_[i].spans;
      table.row();
      table.cell(cut_middle(escaped(group.name), span_name_width));
      if (!is_single) table.cell(who(groups_[i]));
      table.cell(group.wall.count());
      table.duration(group.wall.total());
      for (const double percentile : percentiles()) table.duration(group.wall.known_percentile(percentile));
      table.duration(group.wall.max());
      shares(table, group.time);
      if (i > 0) continue;
      const auto [count, time] = slow(group);
      if (count == 0) continue;
      table.row();
      table.cell(" the slowest");
      if (!is_single) table.cell();
      table.cell(count);
      table.duration(time.total());
      for (std::size_t cell = 0; cell < percentiles().size(); ++cell) table.cell();
      table.duration(group.wall.max());
      shares(table, time);
    }
    if (rows < groups_.size()) table.line(fmt::format("and {} more names with less time", groups_.size() - rows));
    out_.add('\n');
    table.write(out_);
  }

  std::span<const double> percentiles() const {
    static constexpr std::array few{50.0, 99.0};
    static constexpr std::array all{50.0, 90.0, 99.0, 99.9, 99.99};
    return report_.full ? std::span<const double>(all) : few;
  }

  void shares(TextTable& table, const SpanTime& time) const {
    if (!report_.scheduler_seen) return;
    for (const PartColumn& part : parts) {
      const auto [share, is_bound] = known_share(time.*part.ns, time.total(), time.unknown);
      table.cell(share, is_bound);
    }
  }

  /// Of all groups.
  void slowest() {
    std::vector<std::pair<const SpanGroup*, const Span*>> order;
    for (const SpanGroup& group : report_.groups)
      for (const Span& span : group.slowest) order.emplace_back(&group, &span);
    std::ranges::sort(order, [](const auto& a, const auto& b) {
      return std::pair{b.second->length_ns(), a.second->begin_ns} <
             std::pair{a.second->length_ns(), b.second->begin_ns};
    });
    for (const auto& [group, longest] : order | std::views::take(report_.full ? max_slowest_full : max_slowest)) {
      const Span& span = *longest;
      print(out_, "\n{}: ", Duration{span.length_ns()});
      if (report_.groups.size() > 1) print(out_, "{} of ", cut_middle(escaped(group->name), span_name_width));
      print(out_, "{} domain {}, at {}\n", ProcessName{group->comm, group->pid}, span.domain,
            WhenOf{span.begin_ns, report_.run_ns, report_.run_realtime_ns});
      TextBuffer text;
      std::string_view separator = "  ";
      for (const PartColumn& part : parts) {
        if (span.time.*part.ns <= span.length_ns() / 100) continue;
        print(text, "{}{} {}", separator, part.words, Duration{span.time.*part.ns});
        if (const std::string where = place(span, part); !where.empty()) print(text, " in {}", where);
        separator = ", ";
      }
      if (report_.scheduler_seen && span.time.unknown > span.length_ns() / 100)
        print(text, "{}unknown {}", separator, Duration{span.time.unknown});
      if (span.pauses > 0) {
        print(text, "{}{}{}{}", text.text().empty() ? "  " : "; ", Counted{span.pauses, "GC pause", "GC pauses"},
              span.pauses == 1 ? " of " : ", the longest ", Duration{span.longest_pause_ns});
      }
      if (!text.text().empty()) line(text.text(), 2);
      if (report_.input.empty()) continue;
      print(out_, "  {}\n", DumpCommand{report_.input, span.begin_ns, span.end_ns, report_.run_ns});
    }
  }

  /// Where the thread was in its own code, or when it blocked, if stacks are sampled.
  std::string place(const Span& span, const PartColumn& part) const {
    if (report_.stacks && part.ns == &SpanTime::code)
      return place_text(span.stacks, SampleKind::on_cpu, *report_.stacks);
    if (report_.stacks && part.ns == &SpanTime::blocked)
      return place_text(span.stacks, SampleKind::off_cpu, *report_.stacks);
    return {};
  }

  void warnings() {
    TextBuffer text;
    std::uint64_t unfinished = 0, below_min = 0;
    SpanTime time;
    for (const SpanGroup& group : report_.groups) {
      unfinished += group.unfinished;
      below_min += group.below_min;
      time += group.time;
    }
    add_lacks(text, report_.lacks);
    if (report_.lost.any() && !lacks_events(report_.lacks))
      print(text, "warning: {}; spans may be missing\n", report_.lost.text());
    if (unfinished > 0)
      print(text, "{} of unknown length and {} not counted here\n", Counted{unfinished, "span was", "spans were"},
            unfinished == 1 ? "is" : "are");
    if (below_min > 0) print(text, "{} shorter\n", Counted{below_min, "span was", "spans were"});
    if (report_.ungrouped > 0)
      print(text, "{} not counted: too many names\n", Counted{report_.ungrouped, "span was", "spans were"});
    if (const std::string left_out = report_.not_recorded.text({EventKind::begin}); !left_out.empty())
      text.add(folded(left_out +
                          (report_.scheduler_seen ? ": time in the GC counts as CODE" : ": time in the GC is unknown"),
                      0, 2),
               '\n');
    if (!report_.groups.empty() && !report_.scheduler_seen) {
      text.add("no scheduler events: it is unknown whether threads ran or waited\n");
    } else {
      add_unknown_time(text, time.unknown, time.total(), "spans", report_.not_recorded, report_.lacks);
    }
    if (text.text().empty()) return;
    out_.add('\n');
    add_lines(out_, text.text());
  }

  const SpansReport& report_;
  const std::vector<Group> groups_;
  TextBuffer out_;
};

}  // namespace

std::string spans_text(const SpansReport& report) {
  return SpansText{report}.text();
}

}  // namespace rtev
