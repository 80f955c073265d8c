// SPDX-License-Identifier: MIT
#include "analysis/html_report/report_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "analysis/pauses/blame.hpp"
#include "analysis/place_text.hpp"
#include "analysis/report_text.hpp"
#include "analysis/stats/stats_cells.hpp"
#include "base/enum_names.hpp"
#include "base/with_and.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t ms_ns = 1'000'000, second_ns = 1'000'000'000;

/// From which figure on something deserves a warning, and from which on it is bad. docs/guide.md has them.
struct Thresholds {
  std::uint64_t warning, bad;

  Score score(std::uint64_t figure) const {
    return figure >= bad ? Score::bad : figure >= warning ? Score::warning : Score::ok;
  }
};
constexpr Thresholds longest_pause_ns{10 * ms_ns, 100 * ms_ns}, p99_pause_ns{5 * ms_ns, 50 * ms_ns},
    longest_arrival_ns{5 * ms_ns, 50 * ms_ns}, longest_stall_ns{50 * ms_ns, 500 * ms_ns}, gc_percent{10, 30},
    runnable_percent{10, 30};

/// The scheduler takes some time even where a CPU is free.
constexpr std::uint64_t least_wait_ns = ms_ns / 10;

std::uint64_t percent_of(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(part) / static_cast<double>(whole) * 100);
}

class Findings {
 public:
  explicit Findings(const FindingSources& from) : from_(from) {}

  std::vector<Finding> all() {
    if (from_.stats.process_count == 0) {
      left_out();
      if (from_.stats.known_process_count()) nothing_seen();
      losses();
      return std::move(found_);
    }
    // Of the same score what users feel comes before what may be behind it.
    left_out();
    unread();
    pauses();
    cycles();
    heap();
    arrivals();
    gc_share();
    explicit_calls();
    stalls();
    tasks();
    run_queue();
    causes();
    losses();
    std::ranges::stable_sort(found_, std::greater<>(), &Finding::score);
    return std::move(found_);
  }

 private:
  /// "rtev-bpf pauses -i trace.fxt --full". Without a recording of the same program, or of all.
  std::string command(std::string_view subcommand, std::string_view options) const {
    if (!from_.input.empty()) return fmt::format("rtev-bpf {} -i {}{}", subcommand, from_.input, options);
    return fmt::format("rtev-bpf {} -d 10s{}{}", subcommand, program(), options);
  }

  std::string program() const {
    return from_.stats.processes.empty() ? std::string() : program(from_.stats.processes.front().comm);
  }

  /// " -n server"; nothing for a name that a shell would change.
  static std::string program(const std::string& comm) {
    const auto is_plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; };
    if (comm.empty() || comm.front() == '-' || !std::ranges::all_of(comm, is_plain)) return {};
    return " -n " + comm;
  }

  /// What a recording would have had to have, or a trace.
  std::string with_stacks() const {
    return from_.input.empty() ? command("report", " --stacks")
                               : fmt::format("rtev-bpf record --stacks -d 10s{}", program());
  }

  bool has_several_processes() const { return from_.stats.process_count > 1; }
  std::string of(std::string_view comm, std::int32_t pid) const {
    return has_several_processes() ? fmt::format(" of {}", ProcessName{comm, pid}) : std::string();
  }

  Score pause_score() const {
    const Histogram& wall = from_.latency.all.wall;
    return std::max(longest_pause_ns.score(wall.max()), p99_pause_ns.score(wall.known_percentile(99).value_or(0)));
  }

  /// "Of 1,000 pauses 99% were shorter than 3ms."
  std::string usual_pauses(const Histogram& wall) const {
    const std::string pauses =
        fmt::format("{}{}", at_least(from_.latency.lower_bound()), Counted{wall.count(), "pause", "pauses"});
    const auto p99 = wall.known_percentile(99);
    if (!p99) return fmt::format("It is the longest of {}.", pauses);
    return fmt::format("Of {} 99% were shorter than {}.", pauses, Duration{*p99});
  }

  void nothing_seen() {
    found_.push_back({.score = Score::warning,
                      .section = "method",
                      .title = "No OCaml process was seen",
                      .text = "There is nothing to report on: no process of OCaml 5 ran, or none that was chosen.",
                      .next = "The processes of this host, and whether their events are on:",
                      .command = "rtev-bpf ps"});
  }

  /// What --events left out. Findings that need it are not made.
  void left_out() {
    using enum EventKind;
    const std::string what = from_.stats.not_recorded.text({begin, counter, lifecycle, user_unit, process});
    if (what.empty()) return;
    found_.push_back({.score = Score::warning,
                      .section = "method",
                      .title = "Not all events were recorded",
                      .text = capitalized(what) + ": what they tell is unknown.",
                      .next = "For all figures, record without --events."});
  }

  /// Programs with their events off. Of none that is read there are no other findings.
  void unread() {
    const ReadPrograms& programs = from_.stats.read_programs;
    if (programs.is_none()) {
      const bool is_off = programs.off > 0 || programs.unread == 0;
      found_.push_back({.score = Score::warning,
                        .section = "method",
                        .title = is_off ? "Events are off" : "No ring was read",
                        .text = "Nothing is known of pauses, heaps and what is allocated.",
                        .next = is_off ? "Switch them on while you record:" : "Which rings there are, and why not:",
                        .command = is_off ? "rtev-bpf record --enable -d 10s" + program() : "rtev-bpf ps"});
    } else if (programs.off > 0) {
      found_.push_back(
          {.score = Score::info,
           .section = "method",
           .title = fmt::format("Events of {} of {} are off", programs.off,
                                Counted{programs.read + programs.off + programs.unread, "process", "processes"}),
           .text = "Nothing is known of their pauses, heaps and what they allocate.",
           .next = "Switch them on while you record:",
           .command = "rtev-bpf record --enable -d 10s"});
    }
  }

  void pauses() {
    if (from_.latency.is_unknown()) return;
    const Histogram& wall = from_.latency.all.wall;
    if (wall.count() == 0 || from_.pauses.worst.empty()) {
      found_.push_back({.score = Score::info,
                        .section = "pauses",
                        .title = "No pauses",
                        .text = "No GC pause ended in this time.",
                        .next = "",
                        .command = ""});
      return;
    }
    const PauseDetails& worst = *from_.pauses.worst.front();
    const std::string blame =
        blame_text(worst, blame_of(worst), from_.pauses.counts.switches_seen(), *from_.pauses.stacks);
    Finding found{.score = pause_score(), .section = "worst", .title = "Longest pause"};
    found.title = fmt::format("Longest pause {}{}", at_least(from_.latency.lower_bound()), Duration{wall.max()});
    found.text = fmt::format("{} domain {}, {} after the start: {}. {}", ProcessName{worst.comm, worst.domain.pid},
                             DomainName{worst.domain.domain, worst.domain.incarnation},
                             Duration{worst.begin_ns - std::min(worst.begin_ns, from_.pauses.run_ns)}, blame,
                             usual_pauses(wall));
    if (found.score != Score::ok) {
      found.next = from_.has_stacks ? "The events around it:" : "Stacks would say where the program was:";
      found.command =
          !from_.has_stacks ? with_stacks()
          : from_.input.empty()
              ? command("pauses", " --full --stacks")
              : fmt::format("{}", DumpCommand{from_.input, worst.begin_ns, worst.end_ns, from_.pauses.run_ns});
    }
    found_.push_back(std::move(found));
  }

  /// Why the long pauses are long, if there is more than the longest one.
  void causes() {
    const LongPauses& found = from_.pauses.long_pauses;
    if (found.groups.empty() || found.count < 2) return;
    constexpr std::size_t max_shown = 3;
    TextBuffer text;
    print(text, "Of the {} of {} and longer", Counted{found.count, "pause", "pauses"}, Duration{found.least_ns});
    for (std::size_t i = 0; i < std::min(found.groups.size(), max_shown); ++i) {
      const CauseGroup& group = found.groups[i];
      print(text, "{} {} × ", i == 0 ? ":" : ";", Grouped{group.count});
      append(text, CauseName{group, from_.pauses.counts.switches_seen(), has_several_processes()});
      print(text, " ({} at most)", Duration{group.greatest_ns});
    }
    if (found.groups.size() > max_shown) print(text, "; {} had other causes", rest(found, max_shown));
    text.add('.');
    found_.push_back({.score = pause_score() == Score::ok ? Score::ok : Score::info,
                      .section = "causes",
                      .title = "Causes of long pauses",
                      .text = std::string(text.text()),
                      .next = "",
                      .command = command("pauses", " --full")});
  }

  static std::uint64_t rest(const LongPauses& found, std::size_t shown) {
    std::uint64_t count = found.ungrouped;
    for (std::size_t i = shown; i < found.groups.size(); ++i) count += found.groups[i].count;
    return count;
  }

  void gc_share() {
    const StatsFigures& total = from_.stats.total;
    const auto share = total.gc_share();
    if (!share) return;
    Finding found{.score = gc_percent.score(static_cast<std::uint64_t>(*share * 100)), .section = "phases"};
    found.title = fmt::format("{:.1f}% of the time in the GC", *share * 100);
    const Counted minor{total.minor_collections, "minor collection", "minor collections"};
    found.text = fmt::format("Domains were in pauses for {}{} of {}, in {} and {}.", at_least(total.phases_bound()),
                             Duration{total.gc_ns}, Duration{total.domain_ns},
                             total.known_minor_collections() ? fmt::format("{}", minor) : "minor collections",
                             Counted{total.major_cycles, "major cycle", "major cycles"});
    const TimeSplit& time = from_.latency.all.split;
    const std::uint64_t waited_ns = time.runnable + time.blocked();
    const bool is_waiting = from_.latency.scheduler_seen && waited_ns > time.total() / 2;
    if (is_waiting)
      found.text +=
          fmt::format(" For {}{} of it their threads waited.", at_least(time.unknown > 0), Duration{waited_ns});
    if (found.score != Score::ok && !is_waiting) {
      found.next = "Look at the size of the minor heap and at space_overhead:";
      found.command = command("stats", " --gc-tuning");
    }
    found_.push_back(std::move(found));
  }

  void explicit_calls() {
    const StatsFigures& total = from_.stats.total;
    std::uint64_t count = 0;
    std::string list;
    for (std::size_t i = 0; i < explicit_phase_count; ++i) {
      const std::string_view name = explicit_phases()[i];
      count += total.explicit_calls[i];
      if (total.explicit_calls[i] == 0) continue;
      list += fmt::format("{}Gc.{} {}", list.empty() ? "" : ", ", name.substr(std::string_view("explicit_gc_").size()),
                          times(total.explicit_calls[i]));
    }
    if (count == 0) return;
    const bool is_frequent =
        total.wall_ns > 0 && static_cast<double>(count) * second_ns >= static_cast<double>(total.wall_ns);
    found_.push_back({.score = is_frequent && count > 1 ? Score::warning : Score::info,
                      .section = "rates",
                      .title = fmt::format("{} of the Gc module", Counted{count, "explicit call", "explicit calls"}),
                      .text = fmt::format("{} called {}. {}", who_calls(), list, what_calls_do()),
                      .next = from_.has_stacks ? "The flame graphs show which code calls them."
                                               : "Stacks would say which code calls them:",
                      .command = from_.has_stacks ? "" : with_stacks()});
  }

  std::string_view what_calls_do() const {
    std::uint64_t set = 0, others = 0;
    for (std::size_t i = 0; i < explicit_phase_count; ++i)
      (explicit_phases()[i] == "explicit_gc_set" ? set : others) += from_.stats.total.explicit_calls[i];
    if (others == 0) return "Gc.set collects the minor heap if it changes its size.";
    if (set == 0) return "Each of these calls collects, and the program waits for it.";
    return "Gc.set collects the minor heap if it changes its size; each other call collects. The program waits for it.";
  }

  /// The program with most explicit calls.
  std::string who_calls() const {
    const auto calls = [](const ProcessStats& process) {
      return std::reduce(process.figures.explicit_calls.begin(), process.figures.explicit_calls.end());
    };
    const auto most = std::ranges::max_element(from_.stats.processes, {}, calls);
    const auto others = static_cast<std::uint64_t>(
        std::ranges::count_if(from_.stats.processes, [&](const auto& one) { return calls(one) > 0; }));
    if (!has_several_processes() || most == from_.stats.processes.end()) return "The program";
    return fmt::format("{}{}", ProcessName{most->comm, most->pid}, others > 1 ? ", more than others," : "");
  }

  void arrivals() {
    const Histogram& arrivals = from_.series.arrivals();
    if (arrivals.count() == 0) return;
    const std::vector<LastArrival> last = from_.series.last_arrivals();
    Finding found{.score = longest_arrival_ns.score(arrivals.max()), .section = "arrivals"};
    if (found.score == Score::ok) {
      found.title = fmt::format("Domains stopped within {}", Duration{arrivals.max()});
    } else {
      found.title = fmt::format("Domains arrived up to {} late", Duration{arrivals.max()});
    }
    const auto p99 = arrivals.known_percentile(99);
    found.text = fmt::format("In {} the last domain arrived after {} at most{}.",
                             Counted{arrivals.count(), "stop-the-world section", "stop-the-world sections"},
                             Duration{arrivals.max()}, p99 ? fmt::format(", and after {} in 99%", Duration{*p99}) : "");
    if (found.score != Score::ok && !last.empty()) {
      const LastArrival& worst = last.front();
      found.text += fmt::format(" Most of the time all waited for domain {}{}: {}, {} together.", worst.domain,
                                of(worst.comm, worst.pid), times(worst.sections), Duration{worst.total_ns});
      found.next = from_.has_stacks ? "" : "Stacks say which code ran without a safepoint:";
      found.command = from_.has_stacks ? command("pauses", " --full") : with_stacks();
    }
    found_.push_back(std::move(found));
  }

  void heap() {
    for (const ProcessStats& process : from_.stats.processes) {
      if (!process.heap_words.rises_all_the_time()) continue;
      const Trend &heap = process.heap_words, &live = process.live_words;
      // A few cycles say enough if each of them left more than the one before.
      const bool rises = live.count() > 2 && std::ranges::is_sorted(live.samples(), {}, &Trend::Sample::value);
      const bool keeps = (rises && live.last() > live.first()) || live.rises_all_the_time();
      constexpr std::uint64_t much_words = 8'000'000;
      const bool is_much = heap.last() >= 2 * heap.first() && heap.last() - heap.first() >= much_words;
      Finding found{.score = is_much ? Score::bad : Score::warning, .section = "heap"};
      found.title = fmt::format("Heap{} grows all the time", of(process.comm, process.pid));
      found.text = fmt::format("It grew from {} to {} in {}", bytes_of(heap.first()), bytes_of(heap.last()),
                               Duration{heap.span_ns()});
      if (const auto rise = heap.rise_per_second()) found.text += fmt::format(", {} per second", bytes_of(*rise));
      if (process.figures.major_cycles == 0) {
        found.text += ". No major cycle ended, so nothing was freed";
      } else if (keeps) {
        found.text +=
            fmt::format(". What is live after each major cycle grows as well, from {} to {}: the program keeps it",
                        bytes_of(live.first()), bytes_of(live.last()));
      } else {
        found.text += fmt::format(". {} ended", Counted{process.figures.major_cycles, "major cycle", "major cycles"});
      }
      found.text += '.';
      add_allocators(found, process);
      found_.push_back(std::move(found));
      if (std::ranges::count(found_, std::string_view("heap"), &Finding::section) >= max_growing) return;
    }
    if (std::ranges::count(found_, std::string_view("heap"), &Finding::section) > 0) return;
    if (std::ranges::none_of(from_.stats.processes, [](const auto& one) { return one.heap_words.count() > 1; })) return;
    if (std::ranges::all_of(from_.stats.processes, [](const auto& one) { return one.heap_words.is_short(); })) {
      found_.push_back({.score = Score::info,
                        .section = "heap",
                        .title = "Too short to tell whether a heap grows",
                        .text = "No heap was seen for eight seconds."});
      return;
    }
    found_.push_back({.score = Score::ok,
                      .section = "heap",
                      .title = "No heap grows all the time",
                      .text = "No major heap rose in each quarter of the time."});
  }

  /// A heap of which nothing is freed any more.
  void cycles() {
    for (const ProcessStats& process : from_.stats.processes) {
      if (process.cycles_stopped() != true) continue;
      found_.push_back({.score = Score::bad,
                        .section = "heap",
                        .title = fmt::format("Major cycles{} have stopped", of(process.comm, process.pid)),
                        .text = capitalized(stopped_cycles_text(process)) + ", and nothing of it was freed.",
                        .next = "What the collector did:",
                        .command = command("stats", " --full")});
      return;
    }
  }

  /// Who allocates, or what would say it.
  void add_allocators(Finding& found, const ProcessStats& process) const {
    const auto allocator = std::ranges::find(from_.stats.allocators, process.pid, &Allocator::pid);
    if (allocator != from_.stats.allocators.end())
      found.text += fmt::format(" Of what is allocated in minor heaps, {} is in {}.",
                                Percent{allocator->weight, allocator->all}, allocator->place);
    const StatsFigures& figures = process.figures;
    const std::uint64_t direct =
        figures.major_words.value_or(0) - std::min(figures.major_words.value_or(0), figures.promoted_words);
    if (direct > figures.minor_words) {
      found.next = fmt::format(
          "It allocates {} directly in the major heap, in large blocks, of which no samples are "
          "taken. Its code that runs most:",
          bytes_of(direct));
      found.command = from_.has_stacks && !from_.input.empty()
                          ? command("profile", "")
                          : fmt::format("rtev-bpf profile -d 10s{}", program(process.comm));
    } else {
      found.next = from_.has_allocations ? "Who allocates:" : "Stacks of allocations would say who allocates:";
      found.command = from_.has_allocations && !from_.input.empty()
                          ? command("allocs", "")
                          : fmt::format("rtev-bpf allocs -d 10s{}", program(process.comm));
    }
  }

  void run_queue() {
    const LatencyFigures& all = from_.latency.all;
    if (!from_.latency.scheduler_seen) {
      found_.push_back({.score = Score::info,
                        .section = "method",
                        .title = "No scheduler events",
                        .text = "What threads did in pauses is unknown: whether they ran, waited for a CPU or slept.",
                        .next = "Trace as root, and not with --sched off."});
      return;
    }
    const std::uint64_t known_ns = all.split.total() - all.split.unknown;
    if (known_ns == 0) return;
    // Waits within short pauses do no harm.
    const Score most = pause_score() == Score::ok ? Score::info : Score::bad;
    const std::uint64_t own_ns = longest_own_wait_ns(), longest_ns = std::max(own_ns, longest_wait_for_others_ns());
    const Score score =
        std::max(runnable_percent.score(percent_of(all.split.runnable, known_ns)), longest_pause_ns.score(longest_ns));
    const bool hardly_any = score == Score::ok && longest_ns < least_wait_ns;
    Finding found{.score = hardly_any ? Score::ok : std::clamp(score, Score::info, most), .section = "causes"};
    found.title = hardly_any ? "Pauses hardly waited for a CPU"
                             : fmt::format("Pauses waited up to {} for a CPU", Duration{longest_ns});
    found.text = fmt::format("In pauses, threads were ready to run without a CPU for {} of {} ({}), {} at most in one.",
                             Duration{all.split.runnable}, Duration{known_ns}, Percent{all.split.runnable, known_ns},
                             Duration{own_ns});
    if (longest_ns > own_ns)
      found.text += fmt::format(" Domains waited up to {} for another one that had no CPU.", Duration{longest_ns});
    if (score != Score::ok) {
      found.next = from_.pauses.counts.all_switches_seen
                       ? "Use fewer domains than CPUs, or run less beside them. Who had the CPU:"
                       : "Use fewer domains than CPUs, or run less beside them. All who have the CPU, in a new run:";
      found.command = from_.pauses.counts.all_switches_seen
                          ? command("pauses", " --full")
                          : fmt::format("rtev-bpf pauses -d 10s{} --sched all", program());
    }
    found_.push_back(std::move(found));
  }

  /// For which a thread waited in a pause of its own.
  std::uint64_t longest_own_wait_ns() const {
    std::uint64_t longest = from_.latency.all.runnable.max();
    for (const PauseDetails* const pause : from_.pauses.worst) longest = std::max(longest, pause->time.runnable);
    return longest;
  }

  /// For which a long pause waited for another domain, since that had no CPU.
  std::uint64_t longest_wait_for_others_ns() const {
    std::uint64_t longest = 0;
    for (const CauseGroup& group : from_.pauses.long_pauses.groups)
      if (group.key.why == Why::no_cpu) longest = std::max(longest, group.greatest_ns);
    return longest;
  }

  void stalls() {
    if (from_.stalls.programs.empty()) return;
    const LoopProgram& worst = from_.stalls.programs.front();
    std::uint64_t count = 0;
    for (const LoopProgram& program : from_.stalls.programs) count += program.lengths.count();
    if (count == 0 || worst.stalls.empty()) {
      found_.push_back(
          {.score = Score::ok,
           .section = "stalls",
           .title = "Event loops did not stall",
           .text = fmt::format("No turn of an event loop lasted {} or longer.", Duration{from_.stalls.min_ns})});
      return;
    }
    const Stall& stall = worst.stalls.front();
    Finding found{.score = std::max(longest_stall_ns.score(stall.length_ns()), Score::info), .section = "stalls"};
    found.title =
        fmt::format("{} of event loops, {} at most", Counted{count, "stall", "stalls"}, Duration{stall.length_ns()});
    found.text =
        fmt::format("The longest{}: {}.", of(worst.comm, worst.pid), stall_activity(stall, from_.stalls.stacks, true));
    found.command = command("stalls", " --full");
    found_.push_back(std::move(found));
  }

  /// The longest run of a fiber that kept others waiting.
  void tasks() {
    if (from_.tasks.programs.empty() || from_.tasks.programs.front().longest.empty()) return;
    const TaskProgram& worst = from_.tasks.programs.front();
    const TaskRun& run = worst.longest.front();
    constexpr std::size_t max_shown = 3;
    TextBuffer text;
    print(text, "On domain {}{}, {} after the start", run.domain, of(worst.comm, worst.pid),
          Duration{run.begin_ns - std::min(run.begin_ns, from_.pauses.run_ns)});
    if (const std::string place = place_text(run.stacks, SampleKind::on_cpu, *from_.pauses.stacks); !place.empty())
      print(text, ", in {}", place);
    for (std::size_t i = 0; i < std::min(run.waits.size(), max_shown); ++i) {
      const TaskWait& wait = run.waits[i];
      print(text, "{}{} {}{}", i == 0 ? ". It kept waiting: " : ", ", TaskName{wait.task}, wait.certain ? "" : "up to ",
            Duration{wait.ns});
      if (!wait.operation.empty()) print(text, " ({})", Escaped{wait.operation});
    }
    const std::uint64_t more = run.more_waits + run.waits.size() - std::min(run.waits.size(), max_shown);
    if (more > 0) print(text, ", and {} more", Grouped{more});
    text.add('.');
    found_.push_back({.score = std::max(longest_stall_ns.score(run.length_ns()), Score::info),
                      .section = "tasks",
                      .title = fmt::format("{} ran for {} without letting others run", TaskName{run.task},
                                           Duration{run.length_ns()}),
                      .text = std::string(text.text()),
                      .next = "",
                      .command = command("tasks", " --full")});
  }

  void losses() {
    const PausesReport::Counts& counts = from_.pauses.counts;
    std::vector<Lack> lacks = from_.lacks;
    const auto note = [&](std::uint64_t count, std::string_view singular, std::string_view plural) {
      if (count > 0) lacks.push_back({Lack::Of::events, count, singular, plural});
    };
    note(counts.words_before, "word overwritten before it was read", "words overwritten before they were read");
    // The summary counts them, too, if there is one.
    const bool has_gaps = std::ranges::find(lacks, std::string_view("gap of probes"), &Lack::singular) != lacks.end();
    note(has_gaps ? 0 : counts.unprobed, "gap of probes", "gaps of probes");
    const auto has = [&](Lack::Of of) { return std::ranges::find(lacks, of, &Lack::of) != lacks.end(); };
    const bool lacks_events = has(Lack::Of::events) || from_.is_cut;
    std::string what = lacks_text(lacks);
    if (from_.is_cut) what += fmt::format("{}the end of the recording, which was cut", what.empty() ? "" : ", ");
    Finding found{.score = Score::info, .section = "method"};
    if (what.empty() && (!from_.stats.not_recorded.selection.empty() || from_.stats.read_programs.is_none())) return;
    if (what.empty()) {
      found.score = Score::ok;
      found.title = "Nothing was lost";
      found.text = "All events of the time were read: the figures are complete.";
    } else if (lacks_events || has(Lack::Of::scheduler) || has(Lack::Of::scheduler_gaps)) {
      found.score = lacks_events ? Score::warning : Score::info;
      found.title = "Events are missing";
      found.text = fmt::format("Missing: {}. Counts and sums are lower bounds.", what);
      if (from_.stats.total.lost_words > 0) found.next = "Larger rings lose less: OCAMLRUNPARAM=e=20.";
    } else if (has(Lack::Of::samples)) {
      found.title = "Stack samples are missing";
      found.text = fmt::format(
          "All events were read: the figures are complete. Missing: {}, so shares of stacks are less exact.", what);
    } else {
      found.title = "Some events came late";
      found.text = fmt::format("Nothing was lost. Out of order: {}, near which figures may be wrong.",
                               Counted{lacks.front().count, "event", "events"});
    }
    found_.push_back(std::move(found));
  }

  static constexpr std::ptrdiff_t max_growing = 3;

  const FindingSources& from_;
  std::vector<Finding> found_;
};

}  // namespace

std::string_view to_string(Score score) {
  static constexpr std::string_view names[]{"ok", "info", "warning", "bad"};
  return name_at(names, score);
}

std::vector<Finding> findings_of(const FindingSources& sources) {
  return Findings(sources).all();
}

}  // namespace rtev
