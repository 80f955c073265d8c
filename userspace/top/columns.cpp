// SPDX-License-Identifier: MIT
#include "top/columns.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/folding.hpp"
#include "base/text_format.hpp"

namespace rtev::top {
namespace {

constexpr std::size_t name_width = 15;

/// "12.3", "123".
std::string percent(double share) {
  const double percent = share * 100;
  return percent < 99.95 ? fmt::format("{:.1f}", percent) : fmt::format("{:.0f}", std::min(percent, 999'999.0));
}

std::string percent(const std::optional<double>& share) {
  return share ? percent(*share) : "-";
}

std::string time(std::uint64_t ns) {
  constexpr std::uint64_t hour_ns = 3'600'000'000'000;
  if (ns >= hour_ns) return fmt::format("{:.1f}h", static_cast<double>(ns) / static_cast<double>(hour_ns));
  return ns == 0 ? "-" : fmt::format("{}", Duration{ns});
}

std::string rate(double per_second) {
  if (per_second == 0) return "0";
  return per_second < 9.95 ? fmt::format("{:.1f}", per_second) : fmt::format("{:.0f}", per_second);
}

std::string size(double bytes) {
  constexpr double greatest = 9.2e18;
  return fmt::format("{}", Size{static_cast<std::uint64_t>(std::clamp(bytes, 0.0, greatest))});
}

std::string change(const std::optional<double>& bytes) {
  if (!bytes) return "-";
  if (std::abs(*bytes) < 1) return "0";
  return (*bytes < 0 ? "-" : "+") + size(std::abs(*bytes));
}

/// Of a count; unknown where it is 0 and its events are not known.
std::string rate(const ProcessFigures& process, std::uint64_t count, bool is_known) {
  return count == 0 && !is_known ? "-" : rate(process.per_second(count));
}

double number(std::uint64_t count) {
  return static_cast<double>(count);
}

using Process = const ProcessFigures&;

/// "4242", "x12".
std::string id(Process process) {
  return process.index != 0 ? std::to_string(process.pid) : fmt::format("x{}", process.processes);
}

/// "server", "server (ended)", "server (off)", "server (unread)".
std::string name(Process process) {
  const std::string_view state = process.index == 0                          ? ""
                                 : process.ended                             ? " (ended)"
                                 : process.is_off()                          ? " (off)"
                                 : process.events_read == EventsRead::unread ? " (unread)"
                                                                             : "";
  return cut_middle(escaped(process.comm), name_width - state.size()) + std::string(state);
}

constexpr double half = 0.5, long_pause_ns = 100e6;

constexpr std::array columns{
    Column{"PID", "id of the process; x and a number: so many of one program", 7, false, 0,
           [](Process p) { return id(p); }, [](Process p) { return -number(static_cast<std::uint64_t>(p.pid)); }, 0},
    Column{"NAME", "its name, and (off) if its events are, (unread) if its ring is", name_width, true, 0,
           [](Process p) { return name(p); }, nullptr, 0},
    Column{"DOM", "domains that run", 4, false, 9,
           [](Process p) { return p.known(p.domains) ? std::to_string(p.domains) : "-"; },
           [](Process p) { return static_cast<double>(p.domains); }, 0},
    Column{"CPU%", "time that its threads were on a CPU; 100: one CPU, all the time", 6, false, 2,
           [](Process p) { return percent(p.cpu_share); }, [](Process p) { return p.cpu_share.value_or(0); }, 0},
    Column{"GC%", "time in pauses, of the time of its domains", 6, false, 1,
           [](Process p) { return p.gc_share > 0 || p.knows_phases ? percent(p.gc_share) : "-"; },
           [](Process p) { return p.gc_share; }, half},
    Column{"WAIT%", "time that its threads waited for a CPU; 100: one thread, all the time", 6, false, 4,
           [](Process p) { return percent(p.wait_share); }, [](Process p) { return p.wait_share.value_or(0); }, half},
    Column{"P50", "length of pauses that half of them do not exceed; of one pause none", 7, false, 13,
           [](Process p) { return time(p.p50_ns.value_or(0)); }, nullptr, 0},
    Column{"P99", "likewise 99 % of them; of fewer than 100 none", 7, false, 8,
           [](Process p) { return time(p.p99_ns.value_or(0)); }, [](Process p) { return number(p.p99_ns.value_or(0)); },
           0},
    Column{"WORST", "longest pause", 7, false, 0, [](Process p) { return time(p.worst_ns); },
           [](Process p) { return number(p.worst_ns); }, long_pause_ns},
    Column{"STW/s", "stop-the-world sections", 6, false, 15,
           [](Process p) { return rate(p, p.sections, p.knows_phases); }, nullptr, 0},
    Column{"ARRIVE", "longest time until all domains had arrived in one", 7, false, 11,
           [](Process p) { return time(p.arrival_ns); }, [](Process p) { return number(p.arrival_ns); }, 0},
    Column{"MINOR/s", "minor collections", 7, false, 10,
           [](Process p) { return rate(p, p.minor_collections, p.knows_phases); }, nullptr, 0},
    Column{"MAJOR/s", "ends of major cycles", 7, false, 12,
           [](Process p) { return rate(p, p.major_cycles, p.knows_phases); }, nullptr, 0},
    Column{"ALLOC/s", "what it allocated", 7, false, 3,
           [](Process p) {
             return p.allocated_bytes > 0 || p.knows_counters ? size(p.per_second(p.allocated_bytes)) : "-";
           },
           [](Process p) { return p.per_second(p.allocated_bytes); }, 0},
    Column{"PROMO%", "what was promoted to the major heap, of what was allocated in minor heaps", 6, false, 14,
           [](Process p) { return percent(p.promoted_share); }, nullptr, 0},
    Column{"HEAP", "size of the major heap", 7, false, 2,
           [](Process p) { return p.heap_bytes ? size(number(*p.heap_bytes)) : "-"; },
           [](Process p) { return number(p.heap_bytes.value_or(0)); }, 0},
    Column{"LIVE%", "what was live of it after the last major cycle", 6, false, 16,
           [](Process p) { return percent(p.live_share); }, nullptr, 0},
    Column{"GROWTH/s", "growth of the heap in the last minute", 8, false, 6, [](Process p) { return change(p.growth); },
           [](Process p) { return p.growth.value_or(0); }, 0},
    Column{"EV/s", "events", 7, false, 7, [](Process p) { return rate(p, p.events, p.has_events()); },
           [](Process p) { return p.per_second(p.events); }, 0},
    Column{"LOST", "words of its ring that were lost", 6, false, 5,
           [](Process p) {
             return p.lost_words == 0 ? (p.knows_losses ? "0" : "-") : fmt::format("{}", Grouped{p.lost_words});
           },
           [](Process p) { return number(p.lost_words); }, 1},
};

}  // namespace

std::span<const Column> all_columns() {
  return columns;
}

std::vector<const Column*> columns_within(std::size_t width, const Column* always) {
  std::vector<const Column*> by_rank;
  by_rank.reserve(columns.size());
  for (const Column& column : columns) by_rank.push_back(&column);
  std::ranges::stable_sort(by_rank, {}, [&](const Column* column) { return column == always ? 0 : column->rank; });
  std::vector<const Column*> shown;
  std::size_t used = 0;
  for (const Column* const column : by_rank) {
    if (!shown.empty() && used + 1 + column->width > width) break;
    used += 1 + column->width;
    shown.push_back(column);
  }
  std::ranges::sort(shown);  // they lie in an array
  return shown;
}

std::string name_of(const Column& column) {
  std::string name;
  for (const char c : column.title.substr(0, column.title.find('/')))
    if (c != '%') name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

const Column* column_named(std::string_view name) {
  const auto found = std::ranges::find_if(columns, [&](const Column& column) { return name_of(column) == name; });
  return found != columns.end() ? &*found : nullptr;
}

std::vector<std::string> sort_names() {
  std::vector<std::string> names{"worst", "gc", "alloc", "growth", "wait"};
  for (const Column& column : columns)
    if (column.value != nullptr && std::ranges::find(names, name_of(column)) == names.end())
      names.push_back(name_of(column));
  return names;
}

bool is_alarming(const Column& column, const ProcessFigures& process) {
  return column.alarming > 0 && column.value(process) >= column.alarming;
}

std::string cell_of(const Column& column, const ProcessFigures& process) {
  return column.cell(process) + (is_alarming(column, process) ? "!" : "");
}

std::vector<const ProcessFigures*> sorted(std::vector<const ProcessFigures*> rows, const Column* by) {
  std::ranges::sort(rows, [&](const ProcessFigures* one, const ProcessFigures* other) {
    if (by != nullptr && by->value != nullptr) {
      const double first = by->value(*one), second = by->value(*other);
      if (first != second) return first > second;
    }
    return std::pair(one->pid, one->row()) < std::pair(other->pid, other->row());
  });
  return rows;
}

}  // namespace rtev::top
