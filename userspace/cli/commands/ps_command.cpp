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
#include "base/exit_status.hpp"
#include "base/file_limit.hpp"
#include "base/terminal.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "cli/no_match.hpp"
#include "cli/ps_text.hpp"
#include "helper/closers.hpp"
#include "inspect/enabled_list.hpp"
#include "kernel/features.hpp"
#include "session/command/sudo_user.hpp"
#include "session/process_lister.hpp"

namespace rtev::cli {
namespace {

constexpr const char* ps_footer =
    "RUNTIME is the version of OCaml, or the name of another program that writes rings. CPU% is what the process used "
    "of one CPU since it started. EVENTS/S and GC% (the share of pauses in the time of its domains) are of the events "
    "that its ring holds, for each domain from the oldest one until now: minutes or hours of a quiet process, the last "
    "second of a busy one. With --duration all three are of that time. HEAP is the major heap; it is not known if the "
    "ring holds no counter of it. RING says whether the process writes events:\n"
    "\n"
    "  active     it does\n"
    "  paused     it has paused its events (Runtime_events.pause), or rtev-bpf disable has\n"
    "  none       its events are off: use --enable or --ringless\n"
    "  stopped    its runtime removed the ring\n"
    "  ended      the process ended meanwhile\n"
    "  truncated  its ring file was cut: events cannot be read\n"
    "  unreadable its file system may never answer (FUSE, NFS), or did not, or its file belongs to\n"
    "             another user: set OCAML_RUNTIME_EVENTS_DIR\n"
    "  too large  OCaml's runtime cannot make rings of its size (OCAMLRUNPARAM: e, d), and the program\n"
    "             writes beyond the end of its file: restart it with smaller ones\n"
    "  shared     processes with the same pid in two containers write into one file: events are mixed up\n"
    "\n"
    "ENABLED is yes if rtev-bpf switched the events on (enable, --enable).";

double uptime_of(const ProcessInfo& info) {
  const std::uint64_t now = boot_ticks();
  return static_cast<double>(now - std::min(now, info.start_ticks)) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::optional<std::uint64_t> heap_of(const ProcessStats& stats) {
  constexpr std::uint64_t bytes_in_word = 8;
  if (stats.heap_words.count() == 0) return std::nullopt;
  return std::min(stats.heap_words.last(), UINT64_MAX / bytes_in_word) * bytes_in_word;
}

/// Of the time of its domains. Few events do not tell how long the domains were there: they were in the sample.
std::optional<double> gc_share_of(const StatsFigures& figures, std::uint32_t domains, double seconds) {
  constexpr double ns_per_s = 1e9;
  const double domain_ns = std::max(static_cast<double>(figures.domain_ns), seconds * domains * ns_per_s);
  if (domain_ns <= 0) return std::nullopt;
  return std::min(static_cast<double>(figures.gc_ns) / domain_ns, 1.0);
}

/// Sorted by pid.
std::vector<PsRow> rows_of(const ProcessLister& lister, const StatsReport& report) {
  std::vector<PsRow> rows;
  for (const auto& [index, info] : lister.registry().indexed_processes()) {
    PsRow row{.info = &info,
              .use = lister.use_of(index),
              .is_enabled =
                  enabled_by_us(info.pid, info.start_ticks).transform(std::bind_front(std::equal_to(), Enabled::on)),
              .uptime_s = uptime_of(info)};
    const auto stats = std::ranges::find(report.processes, info.pid, &ProcessStats::pid);
    if (stats != report.processes.end()) {
      row.gc_share = gc_share_of(stats->figures, info.domains, lister.seconds());
      row.heap_bytes = heap_of(*stats);
    }
    rows.push_back(std::move(row));
  }
  std::ranges::sort(rows, {}, [](const PsRow& row) { return row.info->pid; });
  return rows;
}

struct PsOptions : ProcessOptions {
  bool json = false;
  bool quiet = false;
};

/// What cannot be seen, and how to see it. `missing`: why processes of other users cannot; null: they can.
void print_notes(const kernel::HostFeatures& host, const kernel::Feature* missing) {
  if (missing != nullptr)
    say(fmt::format("rtev-bpf: only processes of {} are shown: {}: {}\nhint: {}\n", name_of_user(::geteuid()),
                    missing->name, missing->found, missing->hint));
  for (const kernel::Feature& feature : host.features) {
    if (feature.status == kernel::FeatureStatus::ok) continue;
    say(fmt::format("rtev-bpf: {}: {}\nhint: {}\n", feature.name, feature.found, feature.hint));
  }
}

int run_ps(const PsOptions& options) {
  const kernel::HostFeatures view = kernel::inspect_view();
  const bool only_own = view.blocking() != nullptr;
  const kernel::HostFeatures host = only_own ? kernel::inspect_own_view() : view;
  if (const kernel::Feature* feature = host.blocking())
    return report(
        {.what = "cannot inspect processes", .why = feature->name + ": " + feature->found, .hint = feature->hint});
  if (!options.quiet) print_notes(host, view.blocking());
  const auto helper = helper::HelperProcess::start(only_own ? helper::HelperProcess::Rights::all
                                                            : helper::HelperProcess::Rights::needed);
  if (!helper) return report(helper.error());
  const helper::Closers closers(*helper);
  Stats stats({.utilization = false});
  const ProcessLister::Sample sample =
      options.quiet ? std::chrono::nanoseconds{0} : ProcessLister::Sample(options.duration);
  if (sample) stats.header({.start_ns = monotonic_ns()});
  std::optional<ProcessLister> lister;
  lister.emplace(*helper, ProcessFilter{.pids = options.pids, .name_globs = options.names}, raise_file_limit() / 2,
                 sample, [&](const Batch& batch) { stats.consume(batch, lister->registry()); });
  lister->run();
  stats.go_on_until(monotonic_ns());
  const auto rows = rows_of(*lister, stats.report(lister->registry()));
  fmt::print("{}", options.quiet  ? ps_names(rows)
                   : options.json ? ps_json(rows, lister->seconds())
                                  : ps_table(rows, terminal_columns(STDOUT_FILENO)));
  int status = exit_ok;
  if (const ProcessOptions missing = unmatched(options, lister->registry()); missing.select()) {
    if (!options.quiet) say(no_match_message(missing, *helper));
    if (rows.empty()) status = exit_failure;
  } else if (rows.empty() && !options.quiet) {
    say("rtev-bpf: no OCaml 5 process runs now\n");
  }
  return finish_stdout(status);
}

}  // namespace

Subcommand add_ps_command(CLI::App& root) {
  auto options = std::make_shared<PsOptions>();
  CLI::App* const app = root.add_subcommand("ps", "list OCaml 5 processes: ring, domains, events, CPU, GC, memory");
  app->footer(ps_footer);
  add_process_options(*app, *options);
  app->get_option("--duration")->description("count events and CPU time for this time from now on, e.g. 2s");
  app->option_defaults()->group("Output");
  add_json_option(*app, options->json);
  app->add_flag("-q,--quiet", options->quiet,
                "for scripts: only the id and the name of each process, separated by a tab, at once and without "
                "messages")
      ->excludes("--duration")
      ->excludes("--format");
  return {.app = app, .run = [options](const Invocation&) { return run_ps(*options); }};
}

}  // namespace rtev::cli
