// SPDX-License-Identifier: MIT
// The screen of `stats`: what the garbage collector did, in sentences and a table.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/gc_stacks.hpp"
#include "analysis/report_text.hpp"
#include "analysis/stats/gc_tuning.hpp"
#include "analysis/stats/stats_cells.hpp"
#include "analysis/utilization/utilization_report.hpp"
#include "base/folding.hpp"

namespace rtev {
namespace {

/// It fits a terminal of 24 lines.
constexpr std::size_t max_process_rows = 10, max_user_events = 5, max_spans = 5, max_growing = 3,
                      max_stats_programs = 3, least_comm_width = 15 + 2;
constexpr std::string_view more = "and ";  ///< begins the label of rows of others

/// "heap 0.53 MB to 185 MB in 7.99s (23.1 MB/s), rising all the time".
void add_heap_trend(TextBuffer& out, const Trend& heap) {
  const std::string first = fmt::format("{}", bytes_of(heap.first())), last = fmt::format("{}", bytes_of(heap.last()));
  if (first == last) {
    print(out, "heap {}", last);
    return;
  }
  print(out, "heap {} to {}", first, last);
  if (const auto rise = heap.rise_per_second()) print(out, " in {} ({}/s)", Duration{heap.span_ns()}, bytes_of(*rise));
  if (heap.rises_all_the_time()) out.add(", rising all the time");
}

/// "3 OCaml processes in 5.0s".
void add_process_count(TextBuffer& out, const StatsReport& report) {
  const std::uint64_t count = report.distinct_processes();
  if (count == 0 && !report.known_process_count()) {
    out.add("no event of an OCaml process");
  } else {
    append(out, Counted{count, "OCaml process", "OCaml processes"});
    if (count < report.process_count) print(out, ", which ran {} programs,", Grouped{report.process_count});
  }
  print(out, " in {}\n", Duration{report.total.wall_ns});
}

class Screen {
 public:
  Screen(TextBuffer& out, const StatsReport& report) : out_(out), report_(report) {}

  void add_sentences() {
    if (is_single()) {
      sentences(report_.processes.front());
    } else {
      add_process_count(out_, report_);
      programs();
      growing();
      events_off();
    }
    allocators();
  }

  void add_table() {
    if (report_.process_count == 0) return;
    TextTable table;
    table.column("PID", 7).column("COMM", least_comm_width, TextTable::Align::left).column("DOM", 5);
    table.column("WALL", 8);
    if (report_.scheduler_seen) table.column("CPU", 8);
    for (const std::string_view title : {"GC", "GC%"}) table.column(title, 8);
    if (is_single()) {
      for (const std::string_view title : {"MINOR", "CYCLES", "ALLOC", "PROMOTED"}) table.column(title, 8);
      domains(table, report_.processes.front());
    } else {
      for (const std::string_view title : {"CYCLES", "ALLOC", "HEAP"}) table.column(title, 8);
      table.column("GROWTH", 11);
      processes(table);
    }
    out_.add('\n');
    table.write(out_);
    if (is_single()) {
      add_user_spans(out_, report_.processes.front(), 0, max_spans);
    } else if (std::ranges::any_of(report_.processes, [this](const ProcessStats& process) {
                 return has_own_row(process) && process.domain_count() > 1 && process.figures.gc_share() > 0;
               })) {
      out_.add("GC% is of the time of all domains of a process together, WALL the time of the process\n");
    }
    add_why_bound(out_, is_single() ? report_.processes.front().figures : report_.total, false);
  }

 private:
  /// The programs whose processes have one row.
  auto grouped() const {
    return report_.programs |
           std::views::filter([this](const ProgramStats& program) { return report_.has_one_row(program); });
  }

  bool is_single() const { return report_.process_count == 1 && report_.processes.size() == 1; }
  void line(std::string_view text) { out_.add(folded(text, 0, 2), '\n'); }

  void sentences(const ProcessStats& process) {
    const StatsFigures& figures = process.figures;
    TextBuffer head;
    append(head, ProcessName{process.comm, process.pid});
    if (!process.version.empty()) print(head, ", OCaml {}", Escaped{process.version});
    print(head, "{}{}{}", figures.wall() ? ", " : ", in ", Duration{figures.wall_ns}, process.ended ? ", ended" : "");
    if (process.domain_count() == 0) {
      head.add(process.events == EventsRead::yes      ? ": no events"
               : process.events == EventsRead::unread ? ": no events, as its ring was not read"
                                                      : ": events are off");
      if (process.events == EventsRead::off) head.add(how_to_read);
      return line(head.text());
    }
    collector(head, figures, "its");
    line(head.text());
    heap(process);
    if (figures.minor_words > 0 || (figures.minor_collections > 0 && figures.of_counters(0))) allocation(process);
    TextBuffer calls, user;
    add_list(calls, "explicit calls", figures.explicit_calls, explicit_phases(), "explicit_gc_", figures.missing.any());
    add_user_events(user, process, "", max_user_events);
    for (const TextBuffer* const text : {&calls, &user})
      if (!text->text().empty()) line(text->text().substr(0, text->text().size() - 1));
  }

  static void collector(TextBuffer& head, const StatsFigures& figures, std::string_view whose) {
    const std::string_view bound = at_least(figures.phases_bound());
    if (!figures.of_phases(figures.gc_ns)) {
      head.add(": GC is unknown");
    } else if (figures.gc_ns == 0) {
      head.add(": no garbage collection");
    } else {
      print(head, ": GC took {}{}", bound, Duration{figures.gc_ns});
    }
    if (const auto share = figures.gc_share(); share && figures.gc_ns > 0)
      print(head, ", {}{} of the time of {} domains", bound, percent(*share), whose);
    // Stacks say more than phases: domains try for long to begin one where others have the CPUs.
    if (figures.sampled_ns >= least_sampled_ns && figures.gc_sample_share()) {
      print(head, ", by samples of stacks {}{} of {} CPU time", bound,
            Percent{figures.gc_sampled_ns, figures.sampled_ns}, whose);
      if (figures.cpu_ns && figures.gc_cpu_ns > 0)
        print(head, " ({}{} of {} in phases of the GC)", at_least(figures.gc_cpu_bound()), Duration{figures.gc_cpu_ns},
              Duration{*figures.cpu_ns});
    } else if (figures.cpu_ns && figures.gc_cpu_ns > 0) {
      print(head, ", in phases of the GC {}{} of {} CPU time ({} of {})", at_least(figures.gc_cpu_bound()),
            Percent{figures.gc_cpu_ns, *figures.cpu_ns}, whose, Duration{figures.gc_cpu_ns}, Duration{*figures.cpu_ns});
    }
  }

  /// Those whose processes have one row.
  void programs() {
    for (const ProgramStats& program : grouped() | std::views::take(max_stats_programs)) {
      TextBuffer text;
      print(text, "{}, {}", Escaped{program.comm}, Counted{program.processes, "process", "processes"});
      collector(text, program.figures, "their");
      line(text.text());
      text.clear();
      std::string_view separator;
      if (program.figures.minor_words > 0) {
        print(text, "allocated {}{} in minor heaps", at_least(program.figures.minor_words_bound()),
              bytes_of(program.figures.minor_words));
        separator = "; ";
      }
      if (program.max_heap_words) {
        print(text, "{}heaps of up to {}", separator, bytes_of(*program.max_heap_words));
        if (program.rising > 0)
          print(text, ", {} rising all the time",
                program.rising == program.processes ? std::string("all") : fmt::format("{}", Grouped{program.rising}));
        separator = "; ";
      }
      if (program.max_rss_bytes) print(text, "{}up to {} of memory", separator, Size{*program.max_rss_bytes});
      if (text.size() > 0) line("  " + std::string(text.text()));
    }
  }

  bool has_own_row(const ProcessStats& process) const {
    return !grouped_.contains(program_key(process.exe, process.comm));
  }

  /// Of one program sentences() says it.
  void events_off() {
    const ReadPrograms& programs = report_.read_programs;
    if (is_single()) return;
    const std::string text = programs.is_none() ? why_none_read(programs) : why_some_unread(programs);
    if (!text.empty()) line(text);
  }

  static std::string percent(double share) {
    const auto tenths = std::llround(share * 1000);
    return fmt::format("{}.{}%", tenths / 10, tenths % 10);
  }

  void heap(const ProcessStats& process) {
    TextBuffer text;
    if (process.heap_words.count() > 0) add_heap_trend(text, process.heap_words);
    if (process.live_words.count() > 1) {
      print(text, "{}live after a major cycle {} to {}", text.text().empty() ? "" : "; ",
            bytes_of(process.live_words.first()), bytes_of(process.live_words.last()));
    } else if (process.figures.of_phases(process.figures.major_cycles) == 0 && process.heap_words.count() > 0) {
      text.add("; no major cycle ended");
    }
    if (process.max_rss_bytes) {
      print(text, "{}{} of memory at most", text.text().empty() ? "" : "; ", Size{*process.max_rss_bytes});
    }
    if (!text.text().empty()) line(text.text());
    if (process.cycles_stopped() == true) stopped_cycles(process);
  }

  /// That they came, how often, and that they come no more.
  void stopped_cycles(const ProcessStats& process) {
    TextBuffer text;
    if (!is_single()) print(text, "{}: ", ProcessName{process.comm, process.pid});
    text.add("major cycles have stopped: ", std::string_view(stopped_cycles_text(process)));
    line(text.text());
  }

  /// "12.3 MB/s, ", nothing in so short a time that it tells little.
  static std::string rate(std::uint64_t words, std::uint64_t wall_ns, std::string_view bound) {
    constexpr std::uint64_t least_ns = 100'000'000;
    if (wall_ns < least_ns) return {};
    const double per_second = static_cast<double>(words) * 1e9 / static_cast<double>(wall_ns);
    return fmt::format("{}{}/s, ", bound, bytes_of(static_cast<std::uint64_t>(per_second)));
  }

  void allocation(const ProcessStats& process) {
    const StatsFigures& figures = process.figures;
    TextBuffer text;
    const std::string_view bound = at_least(figures.missing.any()), minor_bound = at_least(figures.minor_words_bound());
    print(text, "allocated {}{} in minor heaps ({}{})", minor_bound, bytes_of(figures.minor_words),
          rate(figures.minor_words, figures.wall_ns, minor_bound),
          figures.known_minor_collections()
              ? fmt::format("{}{}", bound, Counted{figures.minor_collections, "minor collection", "minor collections"})
              : "collections unknown");
    if (figures.promoted_words > 0) {
      print(text, ", promoted {} of it ({}{}{})", Percent{figures.promoted_words, figures.minor_words},
            rate(figures.promoted_words, figures.wall_ns, bound), bound, bytes_of(figures.promoted_words));
    }
    const std::uint64_t major = figures.major_words.value_or(0);
    if (major > figures.promoted_words)
      print(text, "; {}{} directly in the major heap", at_least(figures.major_words_lower_bound()),
            bytes_of(major - figures.promoted_words));
    if (figures.major_cycles > 0)
      print(text, "; {}{}", bound, Counted{figures.major_cycles, "major cycle", "major cycles"});
    if (const auto since_ns = process.since_cycle_ns(); since_ns && figures.major_cycles > 0)
      print(text, ", the last {} {}", Duration{*since_ns}, process.ended ? "before the end" : "ago");
    line(text.text());
  }

  /// The processes whose heap grew most, those where it rises all the time first.
  void allocators() {
    if (report_.allocators.empty()) return;
    TextBuffer text;
    text.add("short-lived blocks included, most is allocated");
    std::string_view before = " ";
    for (const Allocator& allocator : report_.allocators) {
      print(text, "{}in {} ({})", before, allocator.place, Percent{allocator.weight, allocator.all});
      before = ", ";
    }
    line(text.text());
  }

  void growing() {
    constexpr std::uint64_t least_words = 131'072;  // 1 MB
    struct Growth {
      bool rises;
      std::uint64_t words;
      const ProcessStats* process;
    };
    std::vector<Growth> order;
    std::size_t rising = 0;
    for (const ProcessStats& process : report_.processes) {
      if (!has_own_row(process)) continue;
      const Trend& heap = process.heap_words;
      const bool rises = heap.rises_all_the_time();
      rising += rises ? 1 : 0;
      const std::uint64_t words = heap.last() - std::min(heap.first(), heap.last());
      if (rises || words >= least_words) order.push_back({rises, words, &process});
    }
    std::ranges::sort(order, [](const Growth& a, const Growth& b) {
      return std::tuple{b.rises, b.words, a.process->pid} < std::tuple{a.rises, a.words, b.process->pid};
    });
    for (const Growth& growth : order | std::views::take(max_growing)) {
      TextBuffer text;
      print(text, "{}: ", ProcessName{growth.process->comm, growth.process->pid});
      add_heap_trend(text, growth.process->heap_words);
      const StatsFigures& figures = growth.process->figures;
      if (figures.of_phases(figures.major_cycles) == 0) text.add("; no major cycle ended");
      line(text.text());
    }
    for (const ProcessStats& process : report_.processes)
      if (process.cycles_stopped() == true) stopped_cycles(process);
    if (rising > max_growing) print(out_, "and {} more with a rising heap\n", Grouped{rising - max_growing});
  }

  /// The cells that all rows have.
  void begin_row(TextTable& table, std::string_view pid, std::string_view comm, std::string_view domain,
                 std::optional<std::uint64_t> wall_ns, const StatsFigures& figures) const {
    const bool bound = figures.phases_bound();
    table.row();
    table.cell(pid);
    table.cell(comm);
    table.cell(domain);
    add_time(table, wall_ns, false);
    if (report_.scheduler_seen) add_time(table, figures.cpu_ns, false);
    add_time(table, figures.of_phases(figures.gc_ns), bound);
    add_share(table, figures.gc_share(), bound);
  }

  static void domain_cells(TextTable& table, const StatsFigures& figures) {
    add_number(table, figures.known_minor_collections(), figures.phases_bound());
    add_number(table, figures.of_phases(figures.major_cycles), figures.phases_bound());
    add_words(table, figures.known_minor_words(), figures.minor_words_bound());
    add_words(table, figures.of_counters(figures.promoted_words), figures.counters_bound());
  }

  void domain_row(TextTable& table, const ProcessStats& process, std::string_view domain,
                  const StatsFigures& figures) const {
    // Of all domains their sum, of which GC% is a share.
    begin_row(table, std::to_string(process.pid), escaped(process.comm), domain, figures.domain_time(), figures);
    domain_cells(table, figures);
  }

  static void process_cells(TextTable& table, const StatsFigures& figures, std::string_view heap,
                            std::optional<std::uint64_t> rise) {
    add_number(table, figures.of_phases(figures.major_cycles), figures.phases_bound());
    add_words(table, figures.known_minor_words(), figures.minor_words_bound());
    table.cell(heap);
    table.cell(rise ? fmt::format("{}/s", bytes_of(*rise)) : "-");
  }

  /// Of rows that sum up others: without a pid, and without WALL, as they were there at different times.
  static std::string rest_label(std::uint64_t count) { return fmt::format("{}{} more", more, Grouped{count}); }

  /// Domains that had one number after another are one row: "3 x12".
  void domains(TextTable& table, const ProcessStats& process) {
    struct Number {
      std::uint64_t count = 0;
      StatsFigures figures{};
    };
    std::map<std::uint16_t, Number> numbers;
    for (const DomainStats& domain : process.domains) {
      Number& number = numbers[domain.domain];
      if (number.count++ == 0) {
        number.figures = domain.figures;
      } else {
        number.figures += domain.figures;
      }
    }
    std::vector<const std::pair<const std::uint16_t, Number>*> order;
    order.reserve(numbers.size());
    for (const auto& number : numbers) order.push_back(&number);
    const std::size_t spans = span_count(process);
    const std::size_t shown =
        std::min(order.size(), spans == 0 ? max_process_rows : max_process_rows - std::min(spans, max_spans) - 2);
    std::ranges::sort(order, [](const auto* a, const auto* b) {
      return std::pair{b->second.figures.gc_ns, a->first} < std::pair{a->second.figures.gc_ns, b->first};
    });
    StatsFigures rest = process.other_domains;
    std::uint64_t others = process.other_domain_count;
    for (std::size_t i = shown; i < order.size(); ++i) {
      rest += order[i]->second.figures;
      others += order[i]->second.count;
    }
    order.resize(shown);
    std::ranges::sort(order, {}, [](const auto* number) { return number->first; });
    for (const auto* const number : order) {
      const auto& [count, figures] = number->second;
      domain_row(table, process,
                 count == 1 ? fmt::format("{}", number->first) : fmt::format("{} x{}", number->first, count), figures);
    }
    if (others > 0) {
      begin_row(table, "", rest_label(others), "", std::nullopt, rest);
      domain_cells(table, rest);
    }
    if (process.domain_count() != 1) domain_row(table, process, "all", process.figures);
  }

  /// Of a program with many processes: how many these are instead of a pid, no WALL, and the largest heap.
  void program_row(TextTable& table, const ProgramStats& program) const {
    begin_row(table, fmt::format("x{}", Grouped{program.processes}), escaped(program.comm),
              fmt::format("{}", Grouped{program.domains}), std::nullopt, program.figures);
    const std::optional<std::uint64_t> heap = program.max_heap_words;
    process_cells(table, program.figures, heap ? fmt::format("{}", bytes_of(*heap)) : "-", std::nullopt);
  }

  void processes(TextTable& table) {
    struct Row {
      const StatsFigures* figures;
      const ProcessStats* process;
      const ProgramStats* program;  ///< null: of one process
    };
    std::vector<Row> rows;
    for (const ProgramStats& program : grouped()) rows.push_back({&program.figures, nullptr, &program});
    for (const ProcessStats& process : report_.processes)
      if (has_own_row(process)) rows.push_back({&process.figures, &process, nullptr});
    std::ranges::stable_sort(rows, std::greater{}, [](const Row& row) { return row.figures->gc_ns; });
    StatsFigures rest;
    std::uint64_t others = report_.process_count;
    for (const ProgramStats& program : report_.programs)
      if (!report_.has_one_row(program)) rest += program.unlisted_figures;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i >= max_process_rows) {
        rest += *rows[i].figures;
        continue;
      }
      others -= rows[i].program != nullptr ? rows[i].program->processes : 1;
      if (rows[i].program != nullptr) {
        program_row(table, *rows[i].program);
        continue;
      }
      const ProcessStats& process = *rows[i].process;
      const Trend& heap = process.heap_words;
      begin_row(table, std::to_string(process.pid), escaped(process.comm),
                fmt::format("{}", Grouped{process.domain_count()}), process.figures.wall(), process.figures);
      process_cells(table, process.figures, heap.count() > 0 ? fmt::format("{}", bytes_of(heap.last())) : "-",
                    heap.rise_per_second());
    }
    if (others > 0) {
      begin_row(table, "", rest_label(others), "", std::nullopt, rest);
      process_cells(table, rest, "-", std::nullopt);
    }
  }

  TextBuffer& out_;
  const StatsReport& report_;
  const std::unordered_set<std::string> grouped_ = report_.programs_of_one_row();
};

/// Returns how many processes did nothing and are left out.
std::uint64_t leave_out_idle(StatsReport& report) {
  const auto idle = static_cast<std::uint64_t>(std::ranges::count_if(report.processes, &ProcessStats::did_nothing)) +
                    report.other_did_nothing;
  if (idle == report.process_count) return 0;
  const std::uint64_t all = report.distinct_processes();
  std::erase_if(report.processes, [](const ProcessStats& process) { return process.did_nothing(); });
  report.process_count -= idle;
  // Most of them are children that ran another program at once: that one is listed.
  report.replaced = report.process_count - std::min(report.process_count, all);
  report.other_process_count -= report.other_did_nothing;
  report.other_did_nothing = 0;
  return all - report.distinct_processes();
}

void add_idle(TextBuffer& out, std::uint64_t left_out) {
  if (left_out > 0) print(out, "without {} that ended without any event\n", Counted{left_out, "process", "processes"});
}

void add_left_out(TextBuffer& out, const StatsReport& report) {
  using enum EventKind;
  const std::string text = report.not_recorded.text({begin, counter, lifecycle, user_unit, process});
  if (!text.empty()) out.add(folded(text, 0, 2), '\n');
}

}  // namespace

std::string stats_sentences(StatsReport report) {
  const std::uint64_t left_out = leave_out_idle(report);
  TextBuffer out;
  Screen(out, report).add_sentences();
  add_idle(out, left_out);
  add_left_out(out, report);
  return std::string{out.text()};
}

std::string stats_text(StatsReport report, bool full, bool gc_tuning) {
  const std::uint64_t left_out = leave_out_idle(report);
  TextBuffer out;
  if (full) {
    add_process_count(out, report);
    add_sections(out, report);
    if (report.total.gc_ns > 0) add_utilization_table(out, report.utilization, report.run_ns, report.run_realtime_ns);
    if (left_out > 0) out.add('\n');
  } else {
    Screen screen(out, report);
    screen.add_sentences();
    if (report.total.gc_ns > 0 && !gc_tuning) add_utilization_line(out, report.utilization);
    if (!gc_tuning) screen.add_table();
  }
  if (gc_tuning) add_gc_tuning(out, report);
  add_idle(out, left_out);
  add_left_out(out, report);
  if (report.switches_dropped > 0) {
    print(out, "warning: CPU times are lower bounds: the kernel dropped {}\n",
          Counted{report.switches_dropped, "context switch", "context switches"});
  }
  if (const std::string gaps = scheduler_gaps_text(report.lacks); !gaps.empty())
    add_line(out, "warning: CPU times are lower bounds, because of " + gaps);
  add_lacks(out, report.lacks);
  if (report.ignored_events > 0) {
    print(out, "warning: too many domains: {} ignored; figures of collections are lower bounds\n",
          Counted{report.ignored_events, "phase was", "phases were"});
  }
  return std::string{out.text()};
}

}  // namespace rtev
