// SPDX-License-Identifier: MIT
// rtev-bpf ps: the OCaml processes of the host, or of this user. Needs no BPF.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/stats_sink.hpp"
#include "base/clock.hpp"
#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/file_limit.hpp"
#include "base/json_writer.hpp"
#include "base/text_format.hpp"
#include "base/text_table.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "helper/closers.hpp"
#include "inspect/enabled_list.hpp"
#include "kernel/features.hpp"
#include "session/command/sudo_user.hpp"
#include "session/process_lister.hpp"

namespace rtev::cli {
namespace {

constexpr std::chrono::milliseconds default_sample{500};

constexpr const char* footer =
    "RUNTIME is the version of OCaml, or the name of another program that writes rings. EVENTS/S is the rate at which "
    "the process wrote events while ps counted, CPU% what it used of one CPU, GC% the share of pauses in the time of "
    "its domains. HEAP is the major heap; it is not known before a counter of it was written. RING says whether the "
    "process writes events:\n"
    "\n"
    "  active     it does\n"
    "  paused     it has paused its events (Runtime_events.pause), or rtev-bpf disable has\n"
    "  none       its events are off: use --enable or --ringless\n"
    "  stopped    its runtime removed the ring\n"
    "  ended      the process ended while ps counted\n"
    "  truncated  its ring file was cut: events cannot be read\n"
    "  unreadable its file system may never answer (FUSE, NFS), or did not, or its file belongs to\n"
    "             another user: set OCAML_RUNTIME_EVENTS_DIR\n"
    "  shared     processes with the same pid in two containers write into one file: events are mixed up\n"
    "\n"
    "ENABLED is yes if rtev-bpf switched the events on (enable, --enable).";

std::string_view runtime_of(const ProcessInfo& info) {
  if (info.runtime != ocaml_runtime) return info.runtime;
  return info.version.empty() ? "5.?" : std::string_view(info.version);
}

/// What is known of a process.
struct Row {
  const ProcessInfo* info;
  ProcessUse use;
  bool is_enabled = false;  ///< by rtev-bpf
  double events_per_second = 0;
  std::optional<double> gc_share{};           ///< of the time of its domains
  std::optional<std::uint64_t> heap_bytes{};  ///< major heap, as its last counter says
  double uptime_s = 0;
};

double uptime_of(const ProcessInfo& info) {
  const std::uint64_t now = boot_ticks();
  return static_cast<double>(now - std::min(now, info.start_ticks)) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::optional<std::uint64_t> heap_of(const ProcessStats& stats) {
  constexpr std::uint64_t bytes_in_word = 8;
  if (stats.heap_words.count() == 0) return std::nullopt;
  return std::min(stats.heap_words.last(), UINT64_MAX / bytes_in_word) * bytes_in_word;
}

/// Sorted by pid.
std::vector<Row> rows_of(const ProcessLister& lister, const StatsReport& report) {
  std::vector<Row> rows;
  for (const auto& [index, info] : lister.registry().indexed_processes()) {
    Row row{.info = &info,
            .use = lister.use_of(index),
            .is_enabled = enabled_by_us(info.pid, info.start_ticks) == Enabled::on,
            .events_per_second = static_cast<double>(info.words.events) / lister.seconds(),
            .uptime_s = uptime_of(info)};
    const auto stats = std::ranges::find(report.processes, info.pid, &ProcessStats::pid);
    if (stats != report.processes.end()) {
      row.gc_share = stats->figures.gc_share();
      row.heap_bytes = heap_of(*stats);
    }
    rows.push_back(std::move(row));
  }
  std::ranges::sort(rows, {}, [](const Row& row) { return row.info->pid; });
  return rows;
}

/// "3s", "12m", "5h", "40d".
std::string short_time(double seconds) {
  constexpr double minute = 60, hour = 60 * minute, day = 24 * hour;
  if (seconds < 2 * minute) return fmt::format("{:.0f}s", seconds);
  if (seconds < 2 * hour) return fmt::format("{:.0f}m", seconds / minute);
  if (seconds < 2 * day) return fmt::format("{:.0f}h", seconds / hour);
  return fmt::format("{:.0f}d", seconds / day);
}

std::string percentage(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f}", *share * 100) : "-";
}

std::string size_or_none(const std::optional<std::uint64_t>& bytes) {
  return bytes.value_or(0) > 0 ? fmt::format("{}", Size{*bytes}) : "-";
}

std::string table_of(const std::vector<Row>& rows) {
  using enum TextTable::Align;
  TextTable table;
  table.column("PID", 7);
  for (const char* title : {"USER", "COMM", "RUNTIME", "RING", "ENABLED"}) table.column(title, 0, left);
  for (const char* title : {"DOM", "EVENTS/S", "CPU%", "GC%", "HEAP", "MEMORY", "UP"}) table.column(title, 0);
  table.column("ARGUMENTS", 0, left);
  for (const auto& [info, use, is_enabled, events_per_second, gc_share, heap_bytes, uptime_s] : rows) {
    const bool has_ring = info->ring != RingState::none;
    table.row();
    table.cell(std::to_string(info->pid));
    table.cell(escaped(name_of_user(info->user)));
    table.cell(escaped(info->comm));
    table.cell(escaped(runtime_of(*info)));
    table.cell(to_string(info->ring));
    table.cell(is_enabled ? "yes" : "-");
    table.cell(has_ring ? std::to_string(info->domains) : "-");
    table.cell(has_ring ? fmt::format("{:.0f}", events_per_second) : "-");
    table.cell(percentage(use.cpu_share));
    table.cell(percentage(gc_share));
    table.cell(size_or_none(heap_bytes));
    table.cell(size_or_none(use.memory_bytes));
    table.cell(short_time(uptime_s));
    table.cell(escaped(use.arguments.empty() ? info->exe : use.arguments));
  }
  TextBuffer text;
  table.write(text);
  return std::string(text.text());
}

std::string json_of(const std::vector<Row>& rows, double seconds) {
  JsonWriter json;
  json.object([&] {
    json.member("type", "ps");
    json.member("schema", 1);
    json.member("sample_s", seconds);
    json.key("processes").array([&] {
      for (const Row& row : rows) {
        const ProcessInfo& info = *row.info;
        json.object([&] {
          json.member("pid", info.pid);
          json.member("user", name_of_user(info.user));
          json.member("comm", info.comm);
          json.member("exe", info.exe);
          json.member("arguments", row.use.arguments);
          json.member("runtime", info.runtime);
          json.member("version", info.version);
          json.member("ring", to_string(info.ring));
          json.member("ring_path", info.ring_path);
          json.member("enabled", row.is_enabled);
          json.member("domains", info.domains);
          json.member("events_per_second", row.events_per_second);
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

struct PsOptions : ProcessOptions {
  bool json = false;
};

int run_ps(const PsOptions& options) {
  kernel::HostFeatures host = kernel::inspect_view();
  const bool only_own = host.blocking() != nullptr;
  if (only_own) host = kernel::inspect_own_view();
  if (const kernel::Feature* feature = host.blocking())
    return report(
        {.what = "cannot inspect processes", .why = feature->name + ": " + feature->found, .hint = feature->hint});
  if (only_own)
    say(fmt::format("rtev-bpf: only processes of {} are shown: to see others needs root\n", name_of_user(::geteuid())));
  for (const kernel::Feature& feature : host.features) {
    if (feature.status == kernel::FeatureStatus::ok) continue;
    say(fmt::format("rtev-bpf: {}: {}\nhint: {}\n", feature.name, feature.found, feature.hint));
  }
  const auto helper = helper::HelperProcess::start(only_own ? helper::HelperProcess::Rights::all
                                                            : helper::HelperProcess::Rights::needed);
  if (!helper) return report(helper.error());
  const helper::Closers closers(*helper);
  Stats stats;
  stats.header({.start_ns = monotonic_ns()});
  std::optional<ProcessLister> lister;
  lister.emplace(*helper, ProcessFilter{.pids = options.pids, .name_globs = options.names}, raise_file_limit() / 2,
                 [&](const Batch& batch) { stats.consume(batch, lister->registry()); });
  lister->run(options.duration.value_or(default_sample));
  const auto rows = rows_of(*lister, stats.report(lister->registry()));
  fmt::print("{}", options.json ? json_of(rows, lister->seconds()) : table_of(rows));
  return finish_stdout(exit_ok);
}

}  // namespace

Subcommand add_ps_command(CLI::App& root) {
  auto options = std::make_shared<PsOptions>();
  CLI::App* const app = root.add_subcommand("ps", "list OCaml 5 processes: ring, domains, events, CPU, GC, memory");
  app->footer(footer);
  add_process_options(*app, *options);
  app->get_option("--duration")->description("count events for this time, e.g. 2s (default: 500ms)");
  app->option_defaults()->group("Output");
  add_json_option(*app, options->json);
  return {.app = app, .run = [options](const Invocation&) { return run_ps(*options); }};
}

}  // namespace rtev::cli
