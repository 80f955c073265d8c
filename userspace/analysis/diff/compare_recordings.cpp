// SPDX-License-Identifier: MIT
// Which figures of which programs are compared.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <tuple>

#include "analysis/diff/comparison.hpp"
#include "analysis/diff/diff_report.hpp"
#include "analysis/stats/gc_tuning.hpp"
#include "analysis/stats/stats_figures.hpp"
#include "base/text_format.hpp"
#include "rtev/names.hpp"

namespace rtev {
namespace {

constexpr double ns_in_second = 1e9, ten_us = 1e4;
constexpr double least_share = 0.005, least_sample_share = 0.02;
/// Factors of DiffOptions::min_change, for what varies more from run to run: durations, their tails, their greatest.
constexpr double usual = 2, tail = 8, extreme = 10;
constexpr double kilobyte = 1e3, megabyte = 1e6;

constexpr std::size_t index(SliceSum sum) {
  return static_cast<std::size_t>(sum);
}

Quotient quotient(SliceSum of, SliceSum per, double scale = 1) {
  return {.of = index(of), .per = index(per), .scale = scale};
}
Quotient frequency(SliceSum of, SliceSum per) {
  return {.of = index(of), .per = index(per), .scale = ns_in_second, .is_count = true};
}
Quotient of_scheduler(SliceSum of, SliceSum per) {
  return {.of = index(of), .per = index(per), .needs_scheduler = true};
}

/// What users and programs suffer from.
void add_symptoms(Comparison& to, const RecordedProgram& a, const RecordedProgram& b, bool has_scheduler) {
  const auto measured = [](const RecordedProgram& of, Measured what) -> const SlicedDistribution& {
    return of.measured[static_cast<std::size_t>(what)];
  };
  const auto percentile = [&](const FigureKind& kind, Measured what, double of) {
    to.add_percentile(kind, measured(a, what), measured(b, what), of);
  };
  const auto duration = [](std::string id, std::string name, DiffRole role, double factor) {
    return FigureKind{.id = std::move(id),
                      .name = std::move(name),
                      .role = role,
                      .unit = DiffUnit::ns,
                      .rising = Rising::bad,
                      .least = ten_us,
                      .change_factor = factor};
  };
  to.add({.id = "gc_share",
          .name = "time in GC",
          .role = DiffRole::symptom,
          .unit = DiffUnit::share,
          .rising = Rising::bad,
          .least = least_share},
         quotient(SliceSum::gc_ns, SliceSum::domain_ns));
  if (has_scheduler)
    to.add({.id = "cpus",
            .name = "CPUs in use",
            .role = DiffRole::symptom,
            .rising = Rising::costs,
            .least = 0.005,
            .change_factor = usual},
           of_scheduler(SliceSum::cpu_ns, SliceSum::running_ns));
  percentile(duration("pause_p50", "pauses, p50", DiffRole::symptom, usual), Measured::pauses, 50);
  percentile(duration("pause_p99", "pauses, p99", DiffRole::symptom, tail), Measured::pauses, 99);
  to.add_longest(duration("pause_longest", "longest pause of a slice", DiffRole::symptom, extreme),
                 measured(a, Measured::pauses), measured(b, Measured::pauses));
  to.add({.id = "heap",
          .name = "heap of a process",
          .role = DiffRole::symptom,
          .unit = DiffUnit::bytes,
          .rising = Rising::bad,
          .least = megabyte,
          .change_factor = usual},
         quotient(SliceSum::heap_byte_ns, SliceSum::heap_ns));
  percentile(duration("stw_arrival_p50", "arrival at stop-the-world, p50", DiffRole::symptom, tail),
             Measured::stw_arrivals, 50);
  percentile(duration("stw_arrival_p99", "arrival at stop-the-world, p99", DiffRole::symptom, extreme),
             Measured::stw_arrivals, 99);
  for (const auto& [name, span] : a.spans) {
    const auto other = b.spans.find(name);
    if (other == b.spans.end()) continue;
    to.add_percentile(
        duration(fmt::format("span_p50:{}", name), fmt::format("span {}, p50", name), DiffRole::symptom, usual), span,
        other->second, 50);
    to.add_percentile(
        duration(fmt::format("span_p99:{}", name), fmt::format("span {}, p99", name), DiffRole::symptom, tail), span,
        other->second, 99);
  }
  for (const auto& [id, name, what] : {std::tuple{"minor", "with a minor collection", Measured::minor_pauses},
                                       {"major", "of the major collector", Measured::major_pauses},
                                       {"explicit", "that the program asks for", Measured::explicit_pauses}}) {
    percentile(duration(fmt::format("{}_pause_p50", id), fmt::format("pauses {}, p50", name), DiffRole::detail, usual),
               what, 50);
    percentile(duration(fmt::format("{}_pause_p99", id), fmt::format("pauses {}, p99", name), DiffRole::detail, tail),
               what, 99);
  }
}

/// What may be behind the symptoms. An earlier one may be the reason for a later one.
void add_causes(Comparison& to, const RecordedProgram& a, const RecordedProgram& b, bool has_scheduler) {
  for (std::size_t call = 0; call < explicit_sums; ++call) {
    std::string name(explicit_phases()[call].substr(std::string_view("explicit_gc_").size()));
    to.add({.id = "calls_" + name,
            .name = "calls of Gc." + name,
            .role = DiffRole::cause,
            .unit = DiffUnit::per_second,
            .rising = Rising::costs,
            .least = 0.05},
           {.of = index(SliceSum::explicit_calls) + call,
            .per = index(SliceSum::process_ns),
            .scale = ns_in_second,
            .is_count = true});
  }
  const auto measured = [](const RecordedProgram& of) -> const SlicedDistribution& {
    return of.measured[static_cast<std::size_t>(Measured::cpu_waits)];
  };
  for (const auto& [name, span] : a.spans) {
    const auto other = b.spans.find(name);
    if (other == b.spans.end()) continue;
    to.add_rate({.id = "span_rate:" + name,
                 .name = "spans " + name,
                 .role = DiffRole::cause,
                 .unit = DiffUnit::per_second,
                 .least = 0.1},
                span, other->second);
  }
  const auto add_bytes = [&](std::string id, std::string name, SliceSum of, double least, double factor) {
    to.add({.id = std::move(id),
            .name = std::move(name),
            .role = DiffRole::cause,
            .unit = DiffUnit::bytes_per_second,
            .rising = Rising::costs,
            .least = least,
            .change_factor = factor},
           quotient(of, SliceSum::running_ns, ns_in_second));
  };
  add_bytes("allocated", "allocated in minor heaps", SliceSum::minor_bytes, megabyte, 1);
  add_bytes("promoted", "promoted", SliceSum::promoted_bytes, 100 * kilobyte, usual);
  add_bytes("major_allocated", "allocated in the major heap", SliceSum::major_bytes, megabyte, usual);
  to.add({.id = "promoted_share",
          .name = "of the allocated promoted",
          .role = DiffRole::cause,
          .unit = DiffUnit::share,
          .rising = Rising::costs,
          .least = least_share,
          .change_factor = usual},
         quotient(SliceSum::promoted_bytes, SliceSum::minor_bytes));
  if (has_scheduler) {
    to.add({.id = "cpu_wait",
            .name = "waiting for a CPU",
            .role = DiffRole::cause,
            .unit = DiffUnit::share,
            .rising = Rising::bad,
            .least = 0.05,
            .change_factor = tail},
           of_scheduler(SliceSum::runnable_ns, SliceSum::running_ns));
    to.add_percentile({.id = "cpu_wait_p99",
                       .name = "wait for a CPU, p99",
                       .role = DiffRole::cause,
                       .unit = DiffUnit::ns,
                       .rising = Rising::bad,
                       .least = 1e6,
                       .change_factor = extreme},
                      measured(a), measured(b), 99);
  }
  to.add({.id = "minor_collections",
          .name = "minor collections",
          .role = DiffRole::cause,
          .unit = DiffUnit::per_second,
          .least = 0.1},
         frequency(SliceSum::minor_collections, SliceSum::domain_ns));
  to.add({.id = "major_cycles",
          .name = "major cycles",
          .role = DiffRole::cause,
          .unit = DiffUnit::per_second,
          .least = 0.05,
          .change_factor = usual},
         frequency(SliceSum::major_cycles, SliceSum::domain_ns));
  to.add({.id = "domains",
          .name = "domains of a process",
          .role = DiffRole::cause,
          .unit = DiffUnit::number,
          .least = 0.5},
         quotient(SliceSum::domain_ns, SliceSum::process_ns));
}

/// Where the changes are.
void add_finding_details(Comparison& to, const RecordedProgram& a, const RecordedProgram& b, bool has_scheduler) {
  to.add({.id = "pauses", .name = "pauses of a domain", .unit = DiffUnit::per_second, .least = 0.1},
         frequency(SliceSum::pauses, SliceSum::domain_ns));
  // The CPU time of phases may fall while domains try for longer to begin one.
  if (!a.cpu.empty() && !b.cpu.empty()) {
    to.add_share({.id = "gc_sample_share",
                  .name = "CPU time in GC, by samples of stacks",
                  .unit = DiffUnit::share,
                  .least = least_sample_share,
                  .change_factor = usual},
                 a.gc, b.gc, SliceSum::cpu_samples);
  } else if (has_scheduler) {
    to.add(
        {.id = "gc_cpu_share", .name = "CPU time in phases of the GC", .unit = DiffUnit::share, .least = least_share},
        of_scheduler(SliceSum::gc_cpu_ns, SliceSum::cpu_ns));
  }
  for (std::size_t phase = 0; phase < phase_sums; ++phase) {
    const std::string name(phase_name(Family::since_5_3, static_cast<std::uint16_t>(phase)));
    if (name.empty()) continue;
    to.add({.id = "phase:" + name, .name = "time in " + name, .unit = DiffUnit::share, .least = least_share},
           {.of = first_phase_sum + phase, .per = index(SliceSum::domain_ns)});
  }
}

/// Functions with a notable part of the samples of one recording at least.
void add_functions(Comparison& to, const std::map<std::string, SlicedSamples>& a,
                   const std::map<std::string, SlicedSamples>& b, SliceSum all, const char* id, const char* title) {
  if (a.empty() || b.empty()) return;
  static const SlicedSamples none;
  const auto add = [&](const std::string& name, const SlicedSamples& in_a, const SlicedSamples& in_b) {
    to.add_share({.id = fmt::format("{}:{}", id, name),
                  .name = fmt::format("{} {}", title, name),
                  .unit = DiffUnit::share,
                  .least = least_sample_share,
                  .change_factor = usual},
                 in_a, in_b, all);
  };
  for (const auto& [name, samples] : a) {
    const auto other = b.find(name);
    add(name, samples, other == b.end() ? none : other->second);
  }
  for (const auto& [name, samples] : b)
    if (!a.contains(name)) add(name, none, samples);
}

std::string joined(const std::set<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all.append(all.empty() ? "" : ", ").append(text);
  return all;
}

void add_settings(DiffProgram& to, const RecordedProgram& a, const RecordedProgram& b) {
  const auto add = [&](const char* id, const char* name, std::string in_a, std::string in_b) {
    if (!in_a.empty() && !in_b.empty() && in_a != in_b)
      to.settings.push_back({.id = id, .name = name, .a = std::move(in_a), .b = std::move(in_b)});
  };
  const auto heap = [](const RecordedProgram& of) {
    const auto words = minor_heap_of(of.fullest_minor_words);
    return words ? heap_parameter(*words) + " words" : std::string();
  };
  add("minor_heap", "minor heap of a domain", heap(a), heap(b));
  add("ocaml", "OCaml", joined(a.versions), joined(b.versions));
}

/// Changes first. Symptoms: what is worse first, then the largest. Causes: those at least half as large as the largest
/// in their order, of which an earlier one may be the reason for a later one. Details: the largest, of times and then
/// of shares.
void sort_figures(std::vector<DiffFigure>& figures) {
  const auto has_symptom = [&](DiffVerdict verdict) {
    return std::ranges::any_of(figures, [&](const DiffFigure& figure) {
      return figure.role == DiffRole::symptom && figure.verdict == verdict;
    });
  };
  const bool is_worse = has_symptom(DiffVerdict::worse), is_better = !is_worse && has_symptom(DiffVerdict::better);
  // What falls is rarely the reason for what is worse, and the other way round.
  const auto is_opposite = [&](const DiffFigure& figure) {
    const bool falls = figure.verdict == DiffVerdict::better || figure.verdict == DiffVerdict::less;
    return figure.role == DiffRole::symptom ? figure.verdict == DiffVerdict::better
                                            : (is_worse && falls) || (is_better && !falls);
  };
  double largest = 0;
  for (const DiffFigure& figure : figures)
    if (figure.changed() && figure.role == DiffRole::cause && !is_opposite(figure))
      largest = std::max(largest, figure.size());
  const auto rank = [&](const DiffFigure& figure) {
    const bool is_share = figure.role == DiffRole::detail && figure.unit == DiffUnit::share;
    double size = figure.changed() ? figure.size() : 0;
    if (figure.role == DiffRole::cause && !is_opposite(figure) && size >= largest / 2) size = largest;
    if (is_share && figure.changed()) size = std::abs(figure.b - figure.a);
    return std::tuple(figure.role, !figure.changed(), is_opposite(figure), is_share, -size);
  };
  std::ranges::stable_sort(figures, {}, rank);
}

DiffSide side_of(const CommonSlices& slices) {
  const RecordedProgram& program = slices.program();
  return {.processes = program.processes,
          .running_ns = running_ns(program),
          .lost = program.lost,
          .longest_pause_ns = program.measured[static_cast<std::size_t>(Measured::pauses)].all().max(),
          .lossy_share = slices.lossy_share(),
          .slices = slices.usable().size()};
}

std::string why_not(const DiffSide& a, const DiffSide& b) {
  constexpr double max_lossy_share = 0.5;
  for (const auto& [name, side] : {std::pair{"A", &a}, {"B", &b}}) {
    if (side->lossy_share > max_lossy_share)
      return fmt::format("{} lacks events in {:.0f}% of its time", name, side->lossy_share * 100);
  }
  for (const auto& [name, side] : {std::pair{"A", &a}, {"B", &b}}) {
    if (side->slices < least_slices) return fmt::format("it ran too short in {}", name);
  }
  return {};
}

const DiffFigure* find(const DiffProgram& program, std::string_view id) {
  const auto found = std::ranges::find(program.figures, id, &DiffFigure::id);
  return found == program.figures.end() ? nullptr : &*found;
}

/// More CPU time of its own than other load makes it take, since caches and cores are shared.
bool takes_more_cpu(const DiffFigure& cpus) {
  constexpr double much = 1.5;
  return cpus.changed() && cpus.b > much * cpus.a;
}

bool has_other_load(const DiffProgram& program) {
  const auto rises = [&](std::string_view id) {
    const DiffFigure* const figure = find(program, id);
    return figure != nullptr && figure->changed() && figure->b > figure->a;
  };
  const DiffFigure* const cpus = find(program, "cpus");
  return (rises("cpu_wait") || rises("cpu_wait_p99")) && !rises("domains") && cpus != nullptr && !takes_more_cpu(*cpus);
}

DiffProgram compare_programs(const RecordedRun& run_a, const RecordedProgram& a, const RecordedRun& run_b,
                             const RecordedProgram& b, double min_change) {
  DiffProgram program{.name_a = a.name, .name_b = b.name, .lacks_room = a.lacks_room || b.lacks_room};
  program.slice_ns = common_slice_ns(run_a, a, run_b, b);
  const CommonSlices in_a(run_a, a, program.slice_ns), in_b(run_b, b, program.slice_ns);
  program.a = side_of(in_a);
  program.b = side_of(in_b);
  program.why_not =
      run_a.not_recorded.kinds != run_b.not_recorded.kinds || run_a.not_recorded.phases != run_b.not_recorded.phases
          ? "--events left out other events in one of them"
          : why_not(program.a, program.b);
  add_settings(program, a, b);
  Comparison comparison(in_a, in_b, min_change);
  const bool has_scheduler = run_a.scheduler_seen && run_b.scheduler_seen;
  add_symptoms(comparison, a, b, has_scheduler);
  add_causes(comparison, a, b, has_scheduler);
  comparison.judge();
  // Of their own: else a hundred functions would hide a change of the figures above.
  add_finding_details(comparison, a, b, has_scheduler);
  comparison.judge();
  add_functions(comparison, a.cpu, b.cpu, SliceSum::cpu_samples, "cpu", "CPU time of");
  comparison.judge();
  add_functions(comparison, a.allocation, b.allocation, SliceSum::allocation_samples, "allocation", "allocation by");
  comparison.judge();
  program.figures = comparison.take();
  if (!program.why_not.empty())
    for (DiffFigure& figure : program.figures) figure.verdict = DiffVerdict::too_few;
  // What was left out is unknown, and would be 0 here.
  if (run_a.not_recorded.kinds.any() || run_b.not_recorded.kinds.any())
    std::erase_if(program.figures, [](const DiffFigure& figure) { return figure.a <= 0 || figure.b <= 0; });
  sort_figures(program.figures);
  program.has_other_load = has_other_load(program);
  return program;
}

DiffRun run_of(const RecordedRun& run) {
  return {.host = run.host,
          .kernel = run.kernel,
          .version = run.version,
          .run_ns = run.run_ns,
          .run_realtime_ns = run.run_realtime_ns,
          .start_ns = run.start_ns,
          .end_ns = run.end_ns,
          .truncated = run.truncated,
          .not_recorded = run.not_recorded,
          .scheduler_seen = run.scheduler_seen,
          .scheduler_dropped = run.scheduler_dropped,
          .samples_dropped = run.samples_dropped,
          .rings_missed = run.rings_missed,
          .processes_left_out = run.processes_left_out};
}

}  // namespace

DiffReport compare(const RecordedRun& a, const RecordedRun& b, const DiffOptions& options) {
  DiffReport report{.a = run_of(a), .b = run_of(b), .min_change = options.min_change, .full = options.full};
  const auto find = [](const RecordedRun& run, const std::string& name) -> const RecordedProgram* {
    const auto found = std::ranges::find(run.programs, name, &RecordedProgram::name);
    return found == run.programs.end() ? nullptr : &*found;
  };
  const auto add = [&](const RecordedProgram& in_a, const RecordedProgram& in_b) {
    report.programs.push_back(compare_programs(a, in_a, b, in_b, options.min_change));
  };
  const auto is_off_in = [](const RecordedRun& run, const RecordedProgram& program) {
    return run.events_off.contains(program.name);
  };
  // One that was renamed, unless both are in one recording.
  if (a.programs.size() == 1 && b.programs.size() == 1 && !is_off_in(b, a.programs.front()) &&
      !is_off_in(a, b.programs.front())) {
    add(a.programs.front(), b.programs.front());
    return report;
  }
  for (const RecordedProgram& program : a.programs) {
    if (const RecordedProgram* const other = find(b, program.name)) {
      add(program, *other);
    } else {
      report.only_a.push_back(program.name);
      if (is_off_in(b, program)) report.off_in_b.push_back(program.name);
    }
  }
  for (const RecordedProgram& program : b.programs) {
    if (find(a, program.name) != nullptr) continue;
    report.only_b.push_back(program.name);
    if (is_off_in(a, program)) report.off_in_a.push_back(program.name);
  }
  const auto rank = [](const DiffProgram& program) {
    constexpr std::string_view order[]{"worse", "mixed", "changed", "better", "same", "not_compared"};
    const double size = program.figures.empty() ? 0 : program.figures.front().size();
    return std::tuple(std::ranges::find(order, program.verdict()) - order, -size);
  };
  std::ranges::stable_sort(report.programs, {}, rank);
  return report;
}

double DiffFigure::size() const {
  constexpr double most = 1000;
  if (a <= 0 || b <= 0) return a == b ? 0 : std::log(most);
  return std::min(std::abs(std::log(b / a)), std::log(most));
}

std::size_t DiffProgram::count(DiffVerdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(figures, verdict, &DiffFigure::verdict));
}

bool DiffProgram::is_of_other_load(const DiffFigure& figure) const {
  if (!has_other_load) return false;
  if (figure.id.starts_with("cpu_wait")) return true;
  const DiffFigure *const cpus = find(*this, "cpus"), *const wait = find(*this, "cpu_wait"),
                          *const longest = find(*this, "cpu_wait_p99");
  if (&figure == cpus) return true;
  const bool is_duration = figure.role == DiffRole::symptom && figure.unit == DiffUnit::ns;
  if ((!is_duration && figure.id != "gc_share") || cpus == nullptr || wait == nullptr) return false;
  constexpr double margin = 1.25;
  const auto slowness = [](double cpu, double waiting) { return cpu > 0 ? (cpu + waiting) / cpu : 1; };
  const double slower = slowness(cpus->b, wait->b) / slowness(cpus->a, wait->a);
  if (figure.b <= figure.a * slower * margin) return true;
  // One wait can be all of a duration.
  return is_duration && longest != nullptr && figure.b - figure.a <= (longest->b - longest->a) * margin;
}

std::string_view DiffProgram::verdict() const {
  if (!why_not.empty()) return "not_compared";
  const auto has = [&](DiffRole role, DiffVerdict verdict) {
    return std::ranges::any_of(
        figures, [&](const DiffFigure& figure) { return figure.role == role && figure.verdict == verdict; });
  };
  for (const DiffRole role : {DiffRole::symptom, DiffRole::cause}) {
    const bool worse = has(role, DiffVerdict::worse), better = has(role, DiffVerdict::better);
    if (worse || better) return worse && better ? "mixed" : worse ? "worse" : "better";
  }
  return std::ranges::any_of(figures, &DiffFigure::changed) ? "changed" : "same";
}

std::string DiffReport::regression() const {
  std::size_t compared = 0;
  for (const DiffProgram& program : programs) {
    compared += program.why_not.empty() ? 1 : 0;
    const auto is_worse = [&](const DiffFigure& figure) {
      return figure.verdict == DiffVerdict::worse && figure.role != DiffRole::detail &&
             !program.is_of_other_load(figure);
    };
    const auto worse = std::ranges::find_if(program.figures, is_worse);
    if (worse != program.figures.end())
      return fmt::format("{} of {} went from {} to {}", Escaped{worse->name}, Escaped{program.name_b},
                         value_text(worse->unit, worse->a), value_text(worse->unit, worse->b));
  }
  return compared == 0 ? "nothing was compared" : "";
}

}  // namespace rtev
