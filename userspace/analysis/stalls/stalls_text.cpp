// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/place_text.hpp"
#include "analysis/report_text.hpp"
#include "analysis/stalls/event_loop.hpp"
#include "analysis/stalls/stalls_report.hpp"
#include "base/folding.hpp"
#include "base/text_table.hpp"
#include "base/utf8.hpp"

namespace rtev {
namespace {

/// They fit a terminal.
constexpr std::size_t max_stall_lines = 22, max_loop_programs = 4, max_causes = 4, max_parts = 2;
constexpr std::size_t span_width = 24;

/// "a lock (futex)": what a thread is blocked in, for people.
std::string_view blocked_in(Syscall syscall) {
  switch (syscall) {
    case Syscall::unknown:
    case Syscall::other:
      return "a system call";
    case Syscall::none:
      return "a page fault";
    case Syscall::futex:
      return "a lock (futex)";
    case Syscall::lock:
      return "a file lock";
    case Syscall::files:
      return "a file system";
    default:
      return to_string(syscall);
  }
}

/// What a stalled thread did for how long.
struct StallPart {
  enum class What : std::uint8_t { code, gc, domains, no_cpu, blocked } what;
  std::uint64_t ns;
};

std::vector<StallPart> parts_of(const SpanTime& time) {
  std::vector<StallPart> parts{{StallPart::What::code, time.code},
                               {StallPart::What::gc, time.gc},
                               {StallPart::What::domains, time.domains},
                               {StallPart::What::no_cpu, time.no_cpu},
                               {StallPart::What::blocked, time.blocked}};
  std::ranges::sort(parts, [](const StallPart& a, const StallPart& b) { return a.ns > b.ns; });
  return parts;
}

/// "on CPU", "blocked in fsync".
void add_what(TextBuffer& out, const Stall& stall, StallPart::What what) {
  switch (what) {
    case StallPart::What::code:
      out.add("on CPU");
      return;
    case StallPart::What::gc:
      out.add("on CPU in the GC");
      return;
    case StallPart::What::domains:
      out.add("blocked in the GC");
      return;
    case StallPart::What::no_cpu:
      out.add("without a CPU");
      return;
    case StallPart::What::blocked:
      out.add("blocked in ", blocked_in(stall.blocked_in));
      return;
  }
}

/// Where the thread was while it did that; empty if it is not known.
std::string place_of(const Stall& stall, StallPart::What what, const StackTable* stacks, bool full) {
  const bool is_known =
      what == StallPart::What::code || what == StallPart::What::gc || what == StallPart::What::blocked;
  if (!stacks || !is_known) return {};
  const SampleKind kind = what == StallPart::What::blocked ? SampleKind::off_cpu : SampleKind::on_cpu;
  return full ? place_text(stall.stacks, kind, *stacks) : short_place_text(stall.stacks, kind, *stacks);
}

/// The time of day; seconds since the run began if that is unknown.
struct When {
  const StallsReport& of;
  std::uint64_t time_ns;
};

void append(TextBuffer& out, const When& when) {
  if (when.of.run_realtime_ns == 0) return append(out, Moment{when.time_ns, when.of.run_ns});
  add_time_of_day(out, when.of.run_realtime_ns + (when.time_ns - when.of.run_ns));
}

class StallsText {
 public:
  explicit StallsText(const StallsReport& report) : report_(report) {}

  std::string text() {
    if (report_.programs.empty()) {
      none();
    } else {
      verdicts();
      const std::vector<Row> rows = longest();
      if (report_.full) {
        for (const Row& row : rows) details(row);
      } else {
        table(rows);
      }
    }
    remarks();
    return std::string{out_.text()};
  }

 private:
  struct Row {
    const LoopProgram* program;
    const Stall* stall;
  };

  void line(std::string_view text, std::size_t indent = 0) { out_.add(folded(text, 0, indent), '\n'); }

  void none() {
    if (report_.not_recorded.has(EventKind::sched_switch)) {
      return line(report_.not_recorded.text({EventKind::sched_switch}) +
                  ": it is unknown when threads wait for events");
    }
    if (!report_.scheduler_seen) return line("no scheduler events: it is unknown when threads wait for events");
    TextBuffer text;
    print(text,
          "no thread has an event loop: none waited {} times or more in select, poll, epoll_wait or io_uring_enter",
          EventLoop::min_turns);
    line(text.text());
    line("rtev-bpf latency --span NAME measures spans that a program marks, rtev-bpf pauses what its GC does");
  }

  void verdicts() {
    for (std::size_t i = 0; i < std::min(report_.programs.size(), report_.full ? SIZE_MAX : max_loop_programs); ++i)
      verdict(report_.programs[i]);
    if (!report_.full && report_.programs.size() > max_loop_programs) {
      print(out_, "and {} with shorter stalls or none\n",
            Counted{report_.programs.size() - max_loop_programs, "more process", "more processes"});
    }
  }

  void verdict(const LoopProgram& program) {
    TextBuffer text;
    print(text, "{}: ", ProcessName{program.comm, program.pid});
    if (program.stalls.empty()) {
      print(text, "no stall of {} or longer", Duration{report_.min_ns});
    } else {
      print(text, "{} of {} or longer (", Counted{program.lengths.count(), "stall", "stalls"},
            Duration{report_.min_ns});
      causes(text, program);
      const Stall& longest = program.stalls.front();
      print(text, "), the longest {} at {}", Duration{longest.length_ns()}, When{report_, longest.begin_ns});
    }
    usual(text, program);
    line(text.text(), 2);
  }

  /// "10 on CPU, 9 blocked in read": what the threads did for the greatest part of each stall.
  static void causes(TextBuffer& out, const LoopProgram& program) {
    std::map<std::string, std::size_t> counts;
    for (const Stall& stall : program.stalls) {
      TextBuffer what;
      add_what(what, stall, parts_of(stall.time).front().what);
      ++counts[std::string{what.text()}];
    }
    std::vector<std::pair<std::string_view, std::size_t>> order(counts.begin(), counts.end());
    std::ranges::sort(order, [](const auto& a, const auto& b) {
      return std::pair{b.second, a.first} < std::pair{a.second, b.first};
    });
    std::string_view separator;
    for (const auto& [what, count] : order | std::views::take(max_causes)) {
      out.add(separator);
      if (order.size() > 1) print(out, "{} ", Grouped{count});
      out.add(what);
      separator = ", ";
    }
    if (order.size() > max_causes) out.add(" ...");
  }

  /// How long turns of its loops are that are no stalls.
  void usual(TextBuffer& out, const LoopProgram& program) const {
    if (report_.sample_interval_ns != 0) return;  // several turns between two samples appear as one
    const std::uint64_t shortest = program.stalls.empty() ? UINT64_MAX : program.stalls.back().length_ns();
    const auto p95 = program.turns.known_percentile(95), p50 = program.turns.known_percentile(50);
    const bool is_p95 = p95 && *p95 < shortest;
    if (!is_p95 && !p50) return;
    print(out, "; {} of all {} of its loop", is_p95 ? "95%" : "half", Counted{program.turns.count(), "turn", "turns"});
    if (program.call != Syscall::unknown) print(out, " ({})", to_string(program.call));
    print(out, " took {} or less", Duration{is_p95 ? *p95 : *p50});
  }

  /// Of all programs.
  std::vector<Row> longest() const {
    std::vector<Row> rows;
    for (const LoopProgram& program : report_.programs)
      for (const Stall& stall : program.stalls) rows.push_back({&program, &stall});
    std::ranges::sort(rows, [](const Row& a, const Row& b) {
      return std::pair(b.stall->length_ns(), a.stall->begin_ns) < std::pair(a.stall->length_ns(), b.stall->begin_ns);
    });
    const std::size_t lines = static_cast<std::size_t>(std::ranges::count(out_.text(), '\n'));
    const std::size_t fits = std::clamp<std::size_t>(max_stall_lines - std::min(max_stall_lines, lines + 6), 3, 10);
    const std::size_t most = report_.top != 0 ? report_.top : report_.full ? 10 : fits;
    if (rows.size() > most) rows.resize(most);
    return rows;
  }

  void table(const std::vector<Row>& rows) {
    if (rows.empty()) return;
    TextTable table;
    table.column("STALL", 0);
    table.column("AT", 0, TextTable::Align::left);
    table.column("THREAD", 0, TextTable::Align::left);
    std::size_t listed = 0;
    for (const LoopProgram& program : report_.programs) listed += program.lengths.count();
    for (const Row& row : rows) {
      table.row();
      table.duration(row.stall->length_ns());
      table.cell(fmt::format("{}", When{report_, row.stall->begin_ns}));
      table.cell(thread_name(row));
      table.remark(stall_activity(*row.stall, report_.stacks, false));
    }
    if (listed > rows.size()) table.line(fmt::format("and {} shorter ones", Grouped{listed - rows.size()}));
    out_.add('\n');
    TextBuffer lines;
    table.write(lines);
    for (const auto text : std::views::split(lines.text(), '\n'))
      if (!text.empty()) out_.add(cut(std::string_view(text), text_columns()), '\n');
    if (report_.input.empty()) return;
    out_.add("\nthe longest one, with what was around it:\n  ");
    command(*rows.front().stall);
  }

  void details(const Row& row) {
    const Stall& stall = *row.stall;
    print(out_, "\n{}: {}, at {}\n", Duration{stall.length_ns()}, thread_name(row),
          WhenOf{stall.begin_ns, report_.run_ns, report_.run_realtime_ns});
    line("  " + stall_activity(stall, report_.stacks, true), 2);
    if (report_.input.empty()) return;
    out_.add("  ");
    command(stall);
  }

  void command(const Stall& stall) {
    print(out_, "{}\n", DumpCommand{report_.input, stall.begin_ns, stall.end_ns, report_.run_ns});
  }

  static std::string thread_name(const Row& row) {
    std::string name = fmt::format("{}", ProcessName{row.program->comm, row.program->pid});
    if (row.stall->tid != row.program->pid) name += fmt::format(" thread {}", row.stall->tid);
    return name;
  }

  void remarks() {
    TextBuffer text;
    add_lacks(text, report_.lacks);
    if (report_.lost.any() && !lacks_events(report_.lacks) && !report_.programs.empty())
      print(text, "warning: {}: time in the GC, spans and tasks may be missing\n", report_.lost.text());
    if (report_.scheduler_seen && !report_.syscalls_seen && !report_.programs.empty())
      text.add("no system calls are known: any sleep counts as a wait for events\n");
    if (!report_.programs.empty() && report_.not_recorded.lacks_pauses())
      text.add(folded(report_.not_recorded.text({EventKind::begin}) + ": time in the GC is unknown", 0, 2), '\n');
    if (!report_.programs.empty() && report_.read_programs.is_none())
      add_line(text, why_none_read(report_.read_programs) + ": time in the GC is unknown");
    if (report_.not_followed > 0)
      print(text, "{} not followed: too many loops\n", Counted{report_.not_followed, "wait was", "waits were"});
    if (report_.scheduler_seen)
      add_unknown_time(text, report_.unknown_ns, report_.turns_ns, "turns of loops", report_.not_recorded,
                       report_.lacks, report_.scheduler_dropped);
    if (report_.scheduler_seen && report_.sample_interval_ns != 0)
      print(text, "main threads were sampled every {}: without BPF (rtev-bpf doctor) nothing better is known\n",
            Duration{report_.sample_interval_ns});
    if (text.text().empty()) return;
    out_.add('\n');
    add_lines(out_, text.text());
  }

  const StallsReport& report_;
  TextBuffer out_;
};

}  // namespace

std::string stall_activity(const Stall& stall, const StackTable* stacks, bool full) {
  TextBuffer text;
  const std::vector<StallPart> parts = parts_of(stall.time);
  const std::uint64_t least = stall.length_ns() / 100;
  for (const StallPart& part : parts | std::views::take(full ? parts.size() : max_parts)) {
    if (part.ns <= least) continue;
    if (!text.text().empty()) text.add(", ");
    if (part.ns < stall.length_ns() - least) print(text, "{} ", Duration{part.ns});
    add_what(text, stall, part.what);
    const bool is_greatest = part.what == parts.front().what;
    if (const std::string place = place_of(stall, part.what, stacks, full); is_greatest && !place.empty())
      print(text, " in {}", place);
    if (part.what == StallPart::What::code && stall.time.gc <= least && stall.knows_pauses) text.add(" (no GC)");
    if (part.what == StallPart::What::no_cpu && stall.behind && stall.behind->ns > part.ns / 2)
      print(text, " behind {}",
            stall.behind->thread.pid == stall.pid ? "its own threads"
                                                  : fmt::format("{}", Quoted{stall.behind->thread.comm()}));
  }
  if (!stall.task.empty()) text.add(", in ", stall.task);
  if (!stall.span.empty()) {
    TextBuffer name;
    add_quoted(name, stall.span);
    print(text, ", in {}",
          columns_of(name.text()) <= span_width || full ? name.text() : std::string_view("a span with a long name"));
  }
  if (!stall.has_returned) text.add("; it went on at the end");
  return std::string{text.text()};
}

std::string stalls_text(const StallsReport& report) {
  return StallsText{report}.text();
}

}  // namespace rtev
