// SPDX-License-Identifier: MIT
#include "formats/text/run_summary.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>
#include <vector>

#include "base/escape.hpp"
#include "base/units.hpp"

namespace rtev {
namespace {

constexpr std::size_t most_rows = 20;

struct Total {
  std::uint64_t processes = 0;
  Accounting words;
};

Total total_of(const Registry& registry) {
  Total total{.processes = registry.others().count, .words = registry.others().words};
  for (const ProcessInfo& facts : registry.processes()) {
    ++total.processes;
    total.words += facts.words;
  }
  return total;
}

void add_count(TextBuffer& out, std::uint64_t count, std::string_view singular, std::string_view plural) {
  out.add_grouped(count);
  out.add(' ', count == 1 ? singular : plural);
}

void add_padded(TextBuffer& out, std::string_view text, std::size_t width) {
  if (text.size() < width) out.add_repeated(' ', width - text.size());
  out.add(text);
}

void add_grouped(TextBuffer& out, std::uint64_t number, std::size_t width) {
  TextBuffer grouped;
  grouped.add_grouped(number);
  add_padded(out, grouped.text(), width);
}

void add_headline(TextBuffer& out, const RunSummary& summary, const Total& total) {
  add_count(out, std::accumulate(summary.events.begin(), summary.events.end(), std::uint64_t{0}), "event", "events");
  out.add(" of ");
  add_count(out, total.processes, "OCaml process", "OCaml processes");
  if (summary.start_ns != 0 && summary.end_ns > summary.start_ns) {
    out.add(" in ");
    add_duration(out, summary.end_ns - summary.start_ns);
  }
  out.add('\n');
}

std::string_view version_of(const ProcessInfo& facts) {
  if (facts.runtime != ocaml_runtime) return facts.runtime;
  if (!facts.version.empty()) return facts.version;
  return facts.family_source == FamilySource::assumed ? "?" : to_string(facts.family);
}

/// Execs seen, to tell the images of one pid apart.
constexpr std::size_t exec_width = 6;

void add_row(TextBuffer& out, const ProcessInfo& facts, bool with_execs) {
  out.add_right(facts.pid, 7);
  if (with_execs) add_grouped(out, facts.exec_generation, exec_width);
  out.add(' ');
  add_column(out, facts.comm, 15);
  out.add(' ');
  add_column(out, version_of(facts), 7);
  add_grouped(out, facts.domains, 4);
  for (const std::uint64_t figure : {facts.words.events, facts.words.delivered}) add_grouped(out, figure, 15);
  for (const std::uint64_t figure : {facts.words.lost, facts.words.before_attach, facts.words.corrupt}) {
    add_grouped(out, figure, 13);
  }
  out.add('\n');
}

void add_table(TextBuffer& out, const Registry& registry, const Total& total) {
  if (total.processes == 0) return;
  std::vector<const ProcessInfo*> rows;
  for (const ProcessInfo& facts : registry.processes()) rows.push_back(&facts);
  const auto shown = std::min(rows.size(), most_rows);
  std::ranges::partial_sort(rows, rows.begin() + static_cast<std::ptrdiff_t>(shown), std::ranges::greater{},
                            [](const ProcessInfo* facts) { return facts->words.events; });
  out.add('\n');
  const bool with_execs = std::ranges::any_of(std::views::take(rows, static_cast<std::ptrdiff_t>(shown)),
                                              [](const ProcessInfo* facts) { return facts->exec_generation > 0; });
  add_padded(out, "PID", 7);
  if (with_execs) add_padded(out, "EXECS", exec_width);
  out.add(" COMM            RUNTIME");
  add_padded(out, "DOM", 4);
  for (const std::string_view title : {"EVENTS", "WORDS"}) add_padded(out, title, 15);
  for (const std::string_view title : {"LOST", "BEFORE", "CORRUPT"}) add_padded(out, title, 13);
  out.add('\n');
  for (std::size_t i = 0; i < shown; ++i) add_row(out, *rows[i], with_execs);
  if (total.processes > shown) {
    Accounting rest = registry.others().words;
    for (std::size_t i = shown; i < rows.size(); ++i) rest += rows[i]->words;
    out.add("        and ");
    add_count(out, total.processes - shown, "more, with", "more, with");
    out.add(" ");
    add_count(out, rest.events, "event", "events");
    if (rest.lost > 0) {
      out.add(" and ");
      add_count(out, rest.lost, "word lost", "words lost");
    }
    out.add('\n');
  }
  out.add('\n');
}

void add_events(TextBuffer& out, const RunSummary& summary) {
  std::string_view separator = "events:  ";
  for (std::size_t kind = 0; kind < event_kind_count; ++kind) {
    if (summary.events[kind] == 0) continue;
    out.add(separator, to_string(static_cast<EventKind>(kind)), ' ');
    out.add_grouped(summary.events[kind]);
    separator = ", ";
  }
  if (separator == ", ") out.add('\n');
}

void add_losses(TextBuffer& out, const RunSummary& summary, const Registry& registry, const Accounting& words) {
  const auto sharing =
      static_cast<std::uint64_t>(std::ranges::count(registry.processes(), RingState::shared, &ProcessInfo::ring));
  std::uint64_t dropped = 0, limited = 0, unprobed = 0;
  for (const RunSummary::Drop& drop : summary.drops)
    (drop.kind == RunSummary::limited ? limited : drop.kind == RunSummary::unprobed ? unprobed : dropped) += drop.count;
  if (words.lost > 0) {
    out.add("!! LOST: ");
    add_count(out, words.lost, "word of a ring was", "words of rings were");
    out.add(" overwritten before they were read\n",
            "   hint: give the programs larger rings (OCAMLRUNPARAM=e=18), write to a file (-o), or trace less "
            "(-p, --sched off)\n");
  }
  if (words.corrupt > 0) {
    out.add("!! CORRUPT: ");
    add_count(out, words.corrupt, "word", "words");
    out.add(" made no sense and ", words.corrupt == 1 ? "was" : "were", " skipped\n",
            "   hint: do two programs write the same ring file, or was it tampered with?\n");
  }
  if (sharing > 0) {
    out.add("!! MIXED: ");
    add_count(out, sharing, "process", "processes");
    out.add(" wrote into a ring of another one: their events cannot be told apart\n",
            "   hint: give each container a directory for rings of its own (OCAML_RUNTIME_EVENTS_DIR)\n");
  }
  if (summary.rings_missed > 0) {
    out.add("!! NOT READ: ");
    add_count(out, summary.rings_missed, "ring", "rings");
    out.add(" that processes announced, or not to the end, since they were gone or unusable too soon\n",
            "   hint: keep the files (OCAML_RUNTIME_EVENTS_PRESERVE=1) and dump them\n");
  }
  if (dropped > 0) {
    out.add("!! DROPPED by the kernel's buffers: ");
    std::string_view separator;
    for (const RunSummary::Drop& drop : summary.drops) {
      if (drop.count == 0 || drop.kind == RunSummary::limited || drop.kind == RunSummary::unprobed) continue;
      out.add(separator, drop.kind, ' ');
      out.add_grouped(drop.count);
      separator = ", ";
    }
    out.add("\n   hint: larger buffers (--buffer SIZE), or do without the scheduler (--sched off)\n");
  }
  if (limited > 0) {
    out.add("!! NOT PROBED for a while, ");
    add_count(out, limited, "time", "times");
    out.add(": a program without a ring made more events than --ringless-limit allows\n",
            "   hint: give it a ring, whose events cost it a fortieth (OCAML_RUNTIME_EVENTS_START=1)\n");
  }
  if (unprobed > 0) {
    out.add("!! NOT PROBED: ");
    add_count(out, unprobed, "process", "processes");
    out.add(" without a ring, of which nothing was seen\n",
            "   hint: give them rings (OCAML_RUNTIME_EVENTS_START=1)\n");
  }
  if (summary.forced > 0) {
    out.add("!! FORCED OUT early: ");
    add_count(out, summary.forced, "time", "times");
    out.add(", too much was waiting to be put in order\n",
            "   hint: trace less (-p, -n, --events), or write to a file (-o)\n");
  }
  if (!summary.complete) {
    out.add("!! TRUNCATED: the recording lacks its end, which would tell what was lost and dropped\n",
            "   hint: the recorder was killed, or the file was cut; what is there stands\n");
  } else if (words.lost == 0 && words.corrupt == 0 && dropped == 0 && limited == 0 && unprobed == 0 &&
             summary.rings_missed == 0 && sharing == 0) {
    // What was lost of how much is not known.
    const std::uint64_t gaps = summary.events[static_cast<std::size_t>(EventKind::lost)];
    out.add(gaps == 0
                ? "nothing lost, nothing dropped\n"
                : "!! NOT PROBED at first: programs without a ring that began before their probes were in place\n");
  }
  if (summary.late > 0) {
    out.add("late:    ");
    add_count(out, summary.late, "event", "events");
    out.add(" came after events with a later time\n");
  }
}

void add_own_cost(TextBuffer& out, const RunSummary& summary) {
  const std::uint64_t events = std::accumulate(summary.events.begin(), summary.events.end(), std::uint64_t{0});
  out.add("tracer:  ");
  add_duration(out, summary.own_cpu_ns);
  out.add(" of cpu time");
  // Of a short run most is the cost of starting.
  constexpr std::uint64_t enough_to_divide_by = 100'000;
  if (events >= enough_to_divide_by) {
    out.add(" (");
    const double per_million = static_cast<double>(summary.own_cpu_ns) * 1e6 / static_cast<double>(events);
    add_duration(out, static_cast<std::uint64_t>(std::min(per_million, 1e18)));
    out.add(" per million events)");
  }
  out.add(", ");
  add_size(out, summary.own_max_rss_bytes);
  out.add(" of memory at most\n");
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
