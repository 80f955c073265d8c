// SPDX-License-Identifier: MIT
#include "top/interval_text.hpp"

#include <algorithm>

#include "analysis/report_json.hpp"
#include "base/json_writer.hpp"
#include "base/text_format.hpp"
#include "base/text_table.hpp"

namespace rtev::top {
namespace {

/// For add_span().
struct Span {
  std::uint64_t start_ns, end_ns, run_ns, run_realtime_ns;
};

/// What rows of processes and of programs have in common.
void add_figures(JsonWriter& json, const ProcessFigures& figures) {
  json.member("comm", figures.comm);
  json.text_or_null("version", figures.version);
  json.member("ended", figures.ended);
  json.member("domains", figures.known(figures.domains));
  json.member("cpu_share", figures.cpu_share);
  const auto of_phases = [&](std::uint64_t count) { return known_count(count, !figures.knows_phases); };
  json.member("gc_share",
              figures.gc_share > 0 || figures.knows_phases ? std::optional{figures.gc_share} : std::nullopt);
  json.member("runnable_share", figures.wait_share);
  json.member("pauses", of_phases(figures.pauses));
  // Without a pause, or a section, there is no length.
  json.member("p50_ns", figures.p50_ns);
  json.member("p99_ns", figures.p99_ns);
  json.member("worst_ns", known_count(figures.worst_ns, figures.pauses == 0));
  json.member("stw_led", of_phases(figures.sections));
  json.member("stw_arrival_ns", known_count(figures.arrival_ns, true));
  json.key("collections").object([&] {
    json.member("minor", of_phases(figures.minor_collections));
    json.member("major_cycles", of_phases(figures.major_cycles));
  });
  json.member("allocated_bytes", known_count(figures.allocated_bytes, !figures.knows_counters));
  json.member("promoted_share", figures.promoted_share);
  json.member("heap_bytes", figures.heap_bytes);
  json.member("live_share", figures.live_share);
  json.member("heap_growth_bytes_per_s", figures.growth);
  json.member("events", figures.known(figures.events));
  json.member("lost_words", known_count(figures.lost_words, !figures.knows_losses));
}

}  // namespace

std::string time_text(const Interval& interval) {
  constexpr std::uint64_t ns_per_s = 1'000'000'000;
  if (interval.realtime_ns == 0) return fmt::format("{} s", interval.elapsed_ns / ns_per_s);
  TextBuffer text;
  add_time_of_day(text, interval.realtime_ns);
  return std::string(text.text().substr(0, text.text().find('.')));
}

std::string totals_text(const Interval& interval) {
  const double seconds = static_cast<double>(interval.length_ns) / 1e9;
  const auto rate = static_cast<std::uint64_t>(seconds > 0 ? static_cast<double>(interval.events) / seconds : 0);
  const auto off = std::ranges::count_if(interval.processes, &ProcessFigures::is_off);
  std::string text =
      fmt::format("{}{}, {} events/s", Counted{interval.processes.size(), "OCaml process", "OCaml processes"},
                  off > 0 ? fmt::format(", {} without events (--enable)", off) : "", Grouped{rate});
  if (interval.is_truncated) text += ", then the recording is truncated";
  if (interval.is_partial) text += fmt::format(", of the last {} only", Duration{interval.length_ns});
  if (interval.lost_words > 0) text += fmt::format(", {} lost!", Counted{interval.lost_words, "word", "words"});
  if (interval.dropped > 0)
    text += fmt::format(", {} lost!", Counted{interval.dropped, "scheduler event", "scheduler events"});
  return text;
}

std::string interval_text(const Interval& interval, const Column* sorted_by, std::size_t width, bool by_process) {
  TextBuffer out;
  print(out, "{}: {}\n", time_text(interval), totals_text(interval));
  if (!interval.worst.empty()) print(out, "longest pause: {}\n", interval.worst);
  TextTable table;
  const std::vector<const Column*> columns = columns_within(width == 0 ? SIZE_MAX : width, sorted_by);
  for (const Column* const column : columns)
    table.column(column->title, column->width, column->is_text ? TextTable::Align::left : TextTable::Align::right);
  for (const ProcessFigures* const process : sorted(by_process ? interval.single_rows() : interval.rows(), sorted_by)) {
    table.row();
    for (const Column* const column : columns) table.cell(cell_of(*column, *process));
  }
  table.write(out);
  out.add('\n');
  return std::string(out.text());
}

std::string interval_json(const Interval& interval, const RunHeader& run, const Column* sorted_by) {
  JsonWriter json;
  json.object([&] {
    add_type(json, "top", run.version);
    add_span(json, Span{.start_ns = interval.time_ns - interval.length_ns,
                        .end_ns = interval.time_ns,
                        .run_ns = run.start_ns,
                        .run_realtime_ns = run.start_realtime_ns});
    json.member("truncated", interval.is_truncated);
    if (!run.not_recorded.selection.empty()) json.values("not_recorded", run.not_recorded.words());
    add_sched_dropped(json, "scheduler_dropped", interval.dropped, interval.scheduler_seen, interval.is_truncated);
    if (!interval.worst.empty()) json.member("longest_pause", std::string_view(interval.worst));
    json.key("processes").array([&] {
      for (const ProcessFigures* const process : sorted(interval.single_rows(), sorted_by)) {
        json.object([&] {
          json.member("pid", process->pid);
          add_figures(json, *process);
        });
      }
    });
    json.key("programs").array([&] {
      for (const ProcessFigures& program : interval.programs) {
        json.object([&] {
          json.member("processes", program.processes);
          add_figures(json, program);
        });
      }
    });
  });
  return std::string(json.text()) + "\n";
}

}  // namespace rtev::top
