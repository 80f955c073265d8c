// SPDX-License-Identifier: MIT
#include "formats/text/run_summary.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>
#include <vector>

#include "base/text_format.hpp"

namespace rtev {
namespace {

constexpr std::size_t max_rows = 20;

struct Total {
  std::uint64_t processes = 0;
  Accounting words;
};

Total total_of(const Registry& registry) {
  Total total{.processes = registry.others().count, .words = registry.others().words};
  for (const ProcessInfo& info : registry.processes()) {
    ++total.processes;
    total.words += info.words;
  }
  return total;
}

void add_headline(TextBuffer& out, const RunSummary& summary, const Total& total) {
  const std::uint64_t events = std::accumulate(summary.events.begin(), summary.events.end(), std::uint64_t{0});
  print(out, "{} of {}", Counted{events, "event", "events"},
        Counted{total.processes, "OCaml process", "OCaml processes"});
  if (summary.start_ns != 0 && summary.end_ns > summary.start_ns)
    print(out, " in {}", Duration{summary.end_ns - summary.start_ns});
  out.add('\n');
}

std::string_view version_of(const ProcessInfo& info) {
  if (info.runtime != ocaml_runtime) return info.runtime;
  if (!info.version.empty()) return info.version;
  return info.family_source == FamilySource::assumed ? "?" : to_string(info.family);
}

/// Execs seen: distinguishes the images of one pid.
constexpr std::size_t exec_width = 6;

void add_row(TextBuffer& out, const ProcessInfo& info, bool with_execs) {
  print(out, "{:>7}", info.pid);
  if (with_execs) print(out, "{:>{}}", Grouped{info.exec_generation}, exec_width);
  out.add(' ');
  add_column(out, info.comm, 15);
  out.add(' ');
  add_column(out, version_of(info), 7);
  print(out, "{:>4} {:>14} {:>14} {:>12} {:>12} {:>12}\n", Grouped{info.domains}, Grouped{info.words.events},
        Grouped{info.words.delivered}, Grouped{info.words.lost}, Grouped{info.words.before_attach},
        Grouped{info.words.corrupt});
}

void add_table(TextBuffer& out, const Registry& registry, const Total& total) {
  if (total.processes == 0) return;
  std::vector<const ProcessInfo*> rows;
  for (const ProcessInfo& info : registry.processes()) rows.push_back(&info);
  const auto shown = std::min(rows.size(), max_rows);
  std::ranges::partial_sort(rows, rows.begin() + static_cast<std::ptrdiff_t>(shown), std::ranges::greater{},
                            [](const ProcessInfo* info) { return info->words.events; });
  out.add('\n');
  const bool with_execs = std::ranges::any_of(std::views::take(rows, static_cast<std::ptrdiff_t>(shown)),
                                              [](const ProcessInfo* info) { return info->exec_generation > 0; });
  print(out, "{:>7}{:>{}} COMM            RUNTIME{:>4}{:>15}{:>15}{:>13}{:>13}{:>13}\n", "PID",
        with_execs ? "EXECS" : "", with_execs ? exec_width : 0, "DOM", "EVENTS", "WORDS", "LOST", "BEFORE", "CORRUPT");
  for (std::size_t i = 0; i < shown; ++i) add_row(out, *rows[i], with_execs);
  if (total.processes > shown) {
    Accounting rest = registry.others().words;
    for (std::size_t i = shown; i < rows.size(); ++i) rest += rows[i]->words;
    print(out, "        and {} more, with {}", Grouped{total.processes - shown},
          Counted{rest.events, "event", "events"});
    if (rest.lost > 0) print(out, " and {}", Counted{rest.lost, "word lost", "words lost"});
    out.add('\n');
  }
  out.add('\n');
}

void add_events(TextBuffer& out, const RunSummary& summary) {
  std::string_view separator = "events:  ";
  for (std::size_t kind = 0; kind < event_kind_count; ++kind) {
    if (summary.events[kind] == 0) continue;
    print(out, "{}{} {}", separator, to_string(static_cast<EventKind>(kind)), Grouped{summary.events[kind]});
    separator = ", ";
  }
  if (separator == ", ") out.add('\n');
}

void warn(TextBuffer& out, std::string_view what, std::string_view hint) {
  print(out, "warning: {}\n   hint: {}\n", what, hint);
}

void add_losses(TextBuffer& out, const RunSummary& summary, const Registry& registry, const Accounting& words) {
  std::uint64_t limited = 0, unprobed = 0, unwritten = 0;
  std::string dropped;
  for (const RunSummary::Drop& drop : summary.drops) {
    if (drop.kind == RunSummary::limited)
      limited += drop.count;
    else if (drop.kind == RunSummary::unprobed)
      unprobed += drop.count;
    else if (drop.kind == RunSummary::unwritten)
      unwritten += drop.count;
    else if (drop.count > 0)
      dropped += fmt::format("{}{} {}", dropped.empty() ? "" : ", ", Escaped{drop.kind}, Grouped{drop.count});
  }
  const auto sharing = std::ranges::count(registry.processes(), RingState::shared, &ProcessInfo::ring);
  const auto unreadable = std::ranges::count(registry.processes(), RingState::unreadable, &ProcessInfo::ring);
  const struct {
    Counted number;
    std::string_view what, hint;
  } warnings[] = {
      {{words.lost, "ring word was", "ring words were"},
       "{} lost: overwritten before they were read",
       "give the programs larger rings (OCAMLRUNPARAM=e=18), write to a file (-o), or trace less (-p, --sched off)"},
      {{words.corrupt, "word was", "words were"},
       "{} corrupt and skipped",
       "check whether other programs write the same ring file"},
      {{static_cast<std::uint64_t>(sharing), "process shares a ring file", "processes share ring files"},
       "{} with processes of other containers: their events are mixed",
       "give each container a ring directory of its own (OCAML_RUNTIME_EVENTS_DIR)"},
      {{static_cast<std::uint64_t>(unreadable), "ring was", "rings were"},
       "{} not read: their file system may never answer (FUSE, NFS), or they exceed --memory-limit",
       "put rings on a local file system (OCAML_RUNTIME_EVENTS_DIR), or raise --memory-limit"},
      {{summary.rings_missed - std::min(summary.rings_missed, static_cast<std::uint64_t>(unreadable)), "ring was",
        "rings were"},
       "{} gone or unusable before all events were read",
       "keep the files (OCAML_RUNTIME_EVENTS_PRESERVE=1) and dump them"},
      {{limited, "time", "times"},
       "tracing by probes paused {}: a program without a ring made more events than --ringless-limit allows",
       "start it with a ring (OCAML_RUNTIME_EVENTS_START=1): an event then costs 0.03 µs, not 1.3 to 1.6 µs"},
      {{unprobed, "process", "processes"},
       "{} without a ring could not be probed: their events are missing",
       "start such programs with a ring (OCAML_RUNTIME_EVENTS_START=1)"},
      {{unwritten, "event was", "events were"},
       "{} read but not written: the output took too long at the end",
       "trace less (-p, -n, --events), or write to a file (-o)"},
  };
  bool is_clean = dropped.empty();
  for (const auto& [number, what, hint] : warnings) {
    if (number.count == 0) continue;
    warn(out, fmt::format(fmt::runtime(what), number), hint);
    is_clean = false;
  }
  if (!dropped.empty())
    warn(out, "the kernel's buffers dropped records: " + dropped,
         "use larger buffers (--buffer SIZE), or trace without the scheduler (--sched off)");
  if (summary.forced > 0)
    warn(out,
         fmt::format("too many events waited to be sorted, so they were released early {}: some may be out of order",
                     Counted{summary.forced, "time", "times"}),
         "trace less (-p, -n, --events), or write to a file (-o)");
  if (!summary.complete) {
    warn(out, "the recording is truncated: losses and drops are unknown",
         "the tracer was killed, or the file was cut; all events up to there are shown");
  } else if (is_clean) {
    // A loss without lost words is the time before the probes of a program without a ring.
    const std::uint64_t gaps = summary.events[static_cast<std::size_t>(EventKind::lost)];
    out.add(gaps == 0 ? "nothing lost, nothing dropped\n"
                      : "warning: events of programs without a ring are missing from the time before their probes were "
                        "attached\n");
  }
  if (summary.late > 0)
    print(out, "late:    {} arrived after events with a later time\n", Counted{summary.late, "event", "events"});
}

void add_own_cost(TextBuffer& out, const RunSummary& summary) {
  const std::uint64_t events = std::accumulate(summary.events.begin(), summary.events.end(), std::uint64_t{0});
  print(out, "tracer:  {} of CPU time", Duration{summary.own_cpu_ns});
  // The cost of a short run is mostly that of starting.
  constexpr std::uint64_t min_events = 100'000;
  if (events >= min_events) {
    const double per_million = static_cast<double>(summary.own_cpu_ns) * 1e6 / static_cast<double>(events);
    print(out, " ({} per million events)", Duration{static_cast<std::uint64_t>(std::min(per_million, 1e18))});
  }
  print(out, ", {} of memory at most\n", Size{summary.own_max_rss_bytes});
}

}  // namespace

std::string summary_text(const RunSummary& summary, const Registry& registry) {
  TextBuffer out;
  const Total total = total_of(registry);
  add_headline(out, summary, total);
  add_table(out, registry, total);
  add_events(out, summary);
  add_losses(out, summary, registry, total.words);
  if (summary.complete) add_own_cost(out, summary);
  return std::string{out.text()};
}

}  // namespace rtev
