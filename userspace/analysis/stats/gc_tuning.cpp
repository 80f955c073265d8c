// SPDX-License-Identifier: MIT
#include "analysis/stats/gc_tuning.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <unordered_set>

#include "analysis/report_text.hpp"
#include "analysis/stats/stats_cells.hpp"
#include "base/folding.hpp"
#include "base/text_format.hpp"

namespace rtev {
namespace {

constexpr std::uint64_t bytes_of_word = 8;
constexpr std::size_t max_tuned_processes = 3;
constexpr unsigned default_overhead = 120;  ///< of OCaml 5.0 to 5.5
/// How much larger the minor heap and the space_overhead of the examples are.
constexpr std::uint64_t larger_heap = 4, larger_overhead = 2;

double per_second(std::uint64_t count, std::uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(ns);
}

/// Three digits: "48.1", "0.00517".
std::string number(double value) {
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:#.3g}", value);
}

/// "48.1 times a second", "2.30 times a minute".
std::string rate_text(double in_second) {
  if (in_second >= 1 || in_second == 0) return number(in_second) + " times a second";
  if (in_second >= 1.0 / 60) return number(in_second * 60) + " times a minute";
  return number(in_second * 3600) + " times an hour";
}

std::string share(double of) {
  return fmt::format("{:.0f}%", of * 100);
}

Size size(double bytes) {
  constexpr double most = 1e18;  // counters of a program may have any value
  return {static_cast<std::uint64_t>(std::clamp(bytes, 0.0, most))};
}

class Section {
 public:
  Section(TextBuffer& out, const ProcessStats& process)
      : out_(out), process_(process), figures_(gc_tuning_of(process)) {}

  void add() {
    if (process_.figures.missing.phases || process_.figures.missing.counters) return;
    TextBuffer head;
    append(head, ProcessName{process_.comm, process_.pid});
    if (!process_.version.empty()) print(head, ", OCaml {}", Escaped{process_.version});
    if (process_.figures.missing.any()) head.add(", figures are lower bounds: events are missing");
    out_.add('\n', folded(head.text(), 0, 2), '\n');
    minor_heap();
    space_overhead();
  }

 private:
  void line(const std::string& text) { out_.add("    ", folded(text, 4, 6), '\n'); }
  void title(const std::string& text) { out_.add("  ", folded(text, 2, 6), '\n'); }

  void minor_heap() {
    const GcTuning& f = figures_;
    const std::string name = "s, the minor heap of a domain";
    if (f.fullest_minor_words == 0) return title(name + ": not in the data: no minor collection");
    const std::string collections =
        fmt::format("minor collections {}{}", rate_text(f.collections_per_second),
                    f.survival ? fmt::format(", {} of what was allocated survived", share(*f.survival)) : "");
    const std::string allocates =
        fmt::format("domain {} allocates {}/s", f.busiest_domain, size(f.allocation_per_second));
    if (!f.minor_heap_words) {
      title(fmt::format("{}: not in the data: no collection found it full ({} at most)", name,
                        bytes_of(f.fullest_minor_words)));
      return line(allocates + "; " + collections);
    }
    const std::uint64_t words = *f.minor_heap_words, more = words * larger_heap;
    title(fmt::format("{}: {}, so s={}", name, Size{words * bytes_of_word}, heap_parameter(words)));
    line(fmt::format("{}: fills it {}; {}", allocates, rate_text(f.fills_per_second(words)), collections));
    const std::string domains = f.domains > 1 ? fmt::format(" for each of {} domains", Grouped{f.domains}) : "";
    line(fmt::format("with s={} it would fill it {}; that is {} more{}", heap_parameter(more),
                     rate_text(f.fills_per_second(more)), Size{(more - words) * bytes_of_word}, domains));
    line("not in the data: how much would survive then");
  }

  void space_overhead() {
    const GcTuning& f = figures_;
    const std::string name = "o, space_overhead";
    const std::string work = f.major_cpu_share
                                 ? fmt::format("major slices took {} of the CPU time", share(*f.major_cpu_share))
                                 : "not in the data: CPU time of major slices";
    if (!f.live_bytes || !f.heap_bytes || *f.live_bytes == 0) {
      title(name + ": not in the data: no major cycle reported what is live");
      return line(work);
    }
    const auto live = static_cast<double>(*f.live_bytes), heap = static_cast<double>(*f.heap_bytes);
    title(fmt::format("{}: heap {}, live {} after the last cycle: {}", name, Size{*f.heap_bytes}, Size{*f.live_bytes},
                      heap >= live ? share((heap - live) / live) + " on top of live" : "nothing on top of live"));
    line(fmt::format("major cycles {}; {}", rate_text(f.cycles_per_second), work));
    const auto aim = [&](unsigned overhead) { return size(live * (100 + overhead) / 100); };
    constexpr unsigned more = default_overhead * larger_overhead;
    line(
        fmt::format("OCaml aims at live x (100 + o) / 100: {} with o={}, the default; {} with o={}, and half as many "
                    "cycles for what is allocated",
                    aim(default_overhead), default_overhead, aim(more), more));
    line("not in the data: the o of this run");
  }

  TextBuffer& out_;
  const ProcessStats& process_;
  const GcTuning figures_;
};

}  // namespace

/// A heap is collected when the next block does not fit: a little of it may be left.
std::optional<std::uint64_t> minor_heap_of(std::uint64_t fullest_words) {
  const std::uint64_t size = fullest_words > UINT64_MAX / 4 ? 0 : std::bit_ceil(fullest_words);
  const bool is_full = fullest_words != 0 && size != 0 && fullest_words >= size - size / 50;
  return is_full ? std::optional(size) : std::nullopt;
}

std::string heap_parameter(std::uint64_t words) {
  constexpr std::uint64_t kilo = 1 << 10, mega = 1 << 20;
  if (words % mega == 0) return fmt::format("{}M", words / mega);
  if (words % kilo == 0) return fmt::format("{}k", words / kilo);
  return std::to_string(words);
}

double GcTuning::fills_per_second(std::uint64_t words) const {
  return words == 0 ? 0 : allocation_per_second / (static_cast<double>(words) * bytes_of_word);
}

GcTuning gc_tuning_of(const ProcessStats& process) {
  const StatsFigures& figures = process.figures;
  GcTuning tuning{.minor_heap_words = minor_heap_of(figures.fullest_minor_words),
                  .fullest_minor_words = figures.fullest_minor_words,
                  .collections_per_second = per_second(figures.minor_collections, figures.wall_ns),
                  .cycles_per_second = per_second(figures.major_cycles, figures.wall_ns)};
  std::set<std::uint16_t> numbers;
  std::uint64_t most = 0;
  for (const DomainStats& domain : process.domains) {
    numbers.insert(domain.domain);
    if (domain.figures.minor_words <= most) continue;
    most = domain.figures.minor_words;
    tuning.busiest_domain = domain.domain;
    tuning.allocation_per_second = per_second(most, domain.figures.wall().value_or(figures.wall_ns)) * bytes_of_word;
  }
  tuning.domains = numbers.size();
  if (figures.minor_words > 0)
    tuning.survival =
        std::min(static_cast<double>(figures.promoted_words) / static_cast<double>(figures.minor_words), 1.0);
  if (process.live_words.count() > 0) tuning.live_bytes = bytes_of(process.live_words.last()).bytes;
  if (process.heap_words.count() > 0) tuning.heap_bytes = bytes_of(process.heap_words.last()).bytes;
  if (figures.cpu_ns.value_or(0) > 0 && figures.gc_cpu_ns > 0)
    tuning.major_cpu_share =
        std::min(static_cast<double>(figures.major_cpu_ns) / static_cast<double>(*figures.cpu_ns), 1.0);
  return tuning;
}

void add_gc_tuning(TextBuffer& out, const StatsReport& report) {
  // Of a program with many processes the one with most GC time stands for all: they are sorted so.
  std::unordered_set<std::string> done;
  const std::unordered_set<std::string> grouped = report.programs_of_one_row();
  std::size_t shown = 0;
  for (const ProcessStats& process : report.processes) {
    if (shown >= max_tuned_processes) break;
    const std::string key = program_key(process.exe, process.comm);
    if (grouped.contains(key) && !done.insert(key).second) continue;
    Section(out, process).add();
    ++shown;
  }
  if (report.process_count > shown)
    print(out, "\nand {} more: select with -p or -n\n", Grouped{report.process_count - shown});
}

void add_gc_tuning(JsonWriter& json, const ProcessStats& process) {
  const GcTuning tuning = gc_tuning_of(process);
  json.key("gc_tuning").object([&] {
    json.key("minor_heap").object([&] {
      json.member("words", tuning.minor_heap_words);
      json.member("fullest_words", tuning.fullest_minor_words);
      json.member("busiest_domain", tuning.busiest_domain);
      json.member("allocated_bytes_per_s", tuning.allocation_per_second);
      json.member("collections_per_s", tuning.collections_per_second);
      json.member("survival", tuning.survival);
      if (!tuning.minor_heap_words) return;
      const std::uint64_t words = *tuning.minor_heap_words;
      json.member("fills_per_s", tuning.fills_per_second(words));
      json.key("with").object([&] {
        json.member("words", words * larger_heap);
        json.member("fills_per_s", tuning.fills_per_second(words * larger_heap));
        json.member("more_bytes_per_domain", words * (larger_heap - 1) * bytes_of_word);
      });
    });
    json.key("space_overhead").object([&] {
      json.member("live_bytes", tuning.live_bytes);
      json.member("heap_bytes", tuning.heap_bytes);
      json.member("cycles_per_s", tuning.cycles_per_second);
      json.member("major_cpu_share", tuning.major_cpu_share);
    });
  });
}

}  // namespace rtev
