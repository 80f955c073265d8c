// SPDX-License-Identifier: MIT
#include "cli/ps_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string_view>

#include "analysis/read_programs.hpp"
#include "base/escape.hpp"
#include "base/folding.hpp"
#include "base/json_writer.hpp"
#include "base/text_format.hpp"
#include "base/text_table.hpp"
#include "session/command/sudo_user.hpp"

namespace rtev::cli {
namespace {

std::string_view runtime_of(const ProcessInfo& info) {
  if (info.runtime != ocaml_runtime) return info.runtime;
  return info.version.empty() ? "5.?" : std::string_view(info.version);
}

/// "3s", "12m", "5h", "40d".
std::string short_time(double seconds) {
  constexpr double minute = 60, hour = 60 * minute, day = 24 * hour;
  if (seconds < 2 * minute) return fmt::format("{:.0f}s", seconds);
  if (seconds < 2 * hour) return fmt::format("{:.0f}m", seconds / minute);
  if (seconds < 2 * day) return fmt::format("{:.0f}h", seconds / hour);
  return fmt::format("{:.0f}d", seconds / day);
}

/// On a terminal there is little room: the arguments tell programs apart, not where they are.
std::string_view without_directory(std::string_view arguments) {
  const std::string_view program = arguments.substr(0, arguments.find(' '));
  return arguments.substr(program.rfind('/') + 1);
}

std::string percentage(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f}", *share * 100) : "-";
}

std::string size_or_none(const std::optional<std::uint64_t>& bytes) {
  return bytes.value_or(0) > 0 ? fmt::format("{}", Size{*bytes}) : "-";
}

}  // namespace

std::string ps_table(std::span<const PsRow> rows, std::size_t columns) {
  using enum TextTable::Align;
  TextTable table;
  table.column("PID", 7);
  for (const char* title : {"USER", "COMM", "RUNTIME", "RING"}) table.column(title, 0, left);
  const bool has_enabled = std::ranges::any_of(rows, [](const PsRow& row) { return row.is_enabled != false; });
  if (has_enabled) table.column("ENABLED", 0, left);
  for (const char* title : {"DOM", "EVENTS/S", "CPU%", "GC%", "HEAP", "MEMORY", "UP"}) table.column(title, 0);
  table.column("ARGUMENTS", 0, left);
  for (const auto& [info, use, is_enabled, gc_share, heap_bytes, uptime_s] : rows) {
    const bool has_ring = events_read(*info) == EventsRead::yes;
    table.row();
    table.cell(std::to_string(info->pid));
    table.cell(escaped(name_of_user(info->user)));
    table.cell(escaped(info->name));
    table.cell(escaped(runtime_of(*info)));
    table.cell(info->missed.too_large > 0 ? "too large" : to_string(info->ring));
    if (has_enabled) table.cell(!is_enabled ? "unknown" : *is_enabled ? "yes" : "-");
    table.cell(has_ring ? std::to_string(info->domains) : "-");
    table.cell(has_ring ? fmt::format("{:.0f}", use.events_per_second) : "-");
    table.cell(percentage(use.cpu_share));
    table.cell(percentage(gc_share));
    table.cell(size_or_none(heap_bytes));
    table.cell(size_or_none(use.memory_bytes));
    table.cell(short_time(uptime_s));
    const std::string_view arguments = use.arguments.empty() ? info->exe : use.arguments;
    table.cell(escaped(columns == 0 ? arguments : without_directory(arguments)));
  }
  TextBuffer text;
  table.write(text);
  std::string lines;
  for (const auto line : std::views::split(text.text(), '\n'))
    if (!line.empty()) lines += cut(std::string_view(line), columns) + '\n';
  return lines;
}

std::string ps_names(std::span<const PsRow> rows) {
  std::string out;
  for (const PsRow& row : rows) {
    if (!row.info->ended) out += fmt::format("{}\t{}\n", row.info->pid, escaped(row.info->name));
  }
  return out;
}

std::string ps_json(std::span<const PsRow> rows, double sample_s) {
  JsonWriter json;
  json.object([&] {
    json.member("type", "ps");
    json.member("schema", 2);
    json.member("sample_s", sample_s);
    json.key("processes").array([&] {
      for (const PsRow& row : rows) {
        const ProcessInfo& info = *row.info;
        json.object([&] {
          json.member("pid", info.pid);
          json.member("user", name_of_user(info.user));
          json.member("comm", info.comm);
          json.member("exe", info.exe);
          json.member("script", info.script);
          json.member("arguments", row.use.arguments);
          json.member("runtime", info.runtime);
          json.text_or_null("version", info.version);
          json.member("ring", to_string(info.ring));
          json.member("ring_path", info.ring_path);
          json.member("enabled", row.is_enabled);
          const bool is_read = events_read(info) == EventsRead::yes;
          json.member("domains", is_read ? std::optional(info.domains) : std::nullopt);
          json.member("events_per_second", is_read ? std::optional(row.use.events_per_second) : std::nullopt);
          json.member("cpu_share", row.use.cpu_share);
          json.member("gc_share", row.gc_share);
          json.member("heap_bytes", row.heap_bytes);
          json.member("memory_bytes", row.use.memory_bytes);
          json.member("uptime_s", row.uptime_s);
        });
      }
    });
  });
  return std::string(json.text()) + "\n";
}

}  // namespace rtev::cli
