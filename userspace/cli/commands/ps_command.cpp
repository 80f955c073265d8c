// SPDX-License-Identifier: MIT
// rtev-bpf ps: the OCaml processes of the host. Needs no BPF.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/file_limit.hpp"
#include "cli/commands/subcommands.hpp"
#include "cli/messages.hpp"
#include "enable/enabled_list.hpp"
#include "helper/closers.hpp"
#include "helper/process_queries.hpp"
#include "inspect/procfs.hpp"
#include "kernel/features.hpp"
#include "processes/discovery.hpp"
#include "session/live/ring_poller.hpp"

namespace rtev::cli {
namespace {

constexpr std::chrono::milliseconds default_sample{500};
constexpr std::uint64_t last_read_timeout_ns = 100'000'000;
constexpr std::uint64_t max_poll_interval_ns = 10'000'000;  // of a ring

constexpr const char* footer =
    "RUNTIME is the version of OCaml, or the name of another program that writes rings. EVENTS/S is the rate at which "
    "the process wrote events while ps counted. RING says whether the process writes events:\n"
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

/// Finds processes once and reads their rings for a moment, to measure how busy they are.
class ProcessLister : private ProcessEvents, private NoKernelControl {
 public:
  ProcessLister(DiscoveryOptions options, helper::HelperProcess helper)
      : helper_(std::move(helper)),
        queries_(helper_, helper::Priority::raised),
        processes_(is_running, registry_),
        inspector_(cache_, [](int, const std::shared_ptr<const Binary>&, std::uint32_t) { return true; }),
        rings_([](const Batch&) {}, [](uid_t) { return RingPoller::any_room; }, max_poll_interval_ns),
        discovery_({.queries = queries_,
                    .registry = registry_,
                    .processes = processes_,
                    .cache = cache_,
                    .inspector = inspector_,
                    .events = *this,
                    .kernel = *this},
                   std::move(options)) {}

  void run(std::chrono::nanoseconds sample) {
    constexpr auto all = std::numeric_limits<std::uint64_t>::max();
    discovery_.begin_scan(ScanScope::all);
    while (discovery_.is_scanning() || processes_.is_inspecting() || !queries_.is_idle()) {
      discovery_.scan_some(all);
      queries_.process(monotonic_ns());
      discovery_.tick(monotonic_ns(), all);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }

    const std::uint64_t begin = monotonic_ns();
    const auto end = begin + static_cast<std::uint64_t>(sample.count());
    while (monotonic_ns() < end) {
      rings_.poll(monotonic_ns(), RingPoller::Which::due,
                  {.take = [](std::uint32_t) { return kernel::RingActivity{.ran = true}; }});
      const std::uint64_t next = std::min(end, rings_.next_poll_ns().value_or(end));
      std::this_thread::sleep_for(std::chrono::nanoseconds(next - std::min(next, monotonic_ns())));
    }
    rings_.finish_all(monotonic_ns(), monotonic_ns() + last_read_timeout_ns);
    seconds_ = static_cast<double>(monotonic_ns() - begin) / 1e9;
    rings_.update(registry_);
    note_ends();
  }

  void print() const {
    fmt::print("{:>8} {:<15} {:<7} {:<9} {:<7} {:>7} {:>10}  {}\n", "PID", "COMM", "RUNTIME", "RING", "ENABLED",
               "DOMAINS", "EVENTS/S", "BINARY");
    std::vector<const ProcessInfo*> processes;
    for (const ProcessInfo& info : registry_.processes()) processes.push_back(&info);
    std::ranges::sort(processes, {}, &ProcessInfo::pid);
    for (const ProcessInfo* info : processes) {
      const bool has_ring = info->ring != RingState::none;
      TextBuffer comm;
      add_column(comm, info->comm, 15);
      const bool is_enabled = has_ring && enable::was_enabled(info->pid, info->start_ticks);
      fmt::print("{:>8} {} {:<7} {:<9} {:<7} {:>7} {:>10}  {}\n", info->pid, comm.text(), runtime_of(*info),
                 to_string(info->ring), is_enabled ? "yes" : "-", has_ring ? std::to_string(info->domains) : "-",
                 has_ring ? fmt::format("{:.0f}", static_cast<double>(info->words.events) / seconds_) : "-",
                 escaped(info->exe));
    }
  }

 private:
  /// Processes may have ended since they were found: without BPF nothing reports that.
  void note_ends() {
    for (const auto& [index, info] : registry_.indexed_processes()) {
      if (!is_running(info.pid)) registry_.process(index).ring = after_end(info.ring);
    }
  }

  /// Where BPF would read whether the events of the process are paused.
  void track(std::int32_t pid, const rtev_tracked& tracked) override {
    const TracedProcess* const process = processes_.find(pid);
    if (tracked.paused_flag == 0 || process == nullptr || !process->index) return;
    queries_.ask({.pid = pid, .word_address = tracked.paused_flag}, process->user,
                 [this, index = *process->index](const ProcessView& view) {
                   RingState& ring = registry_.process(index).ring;
                   if (view.word.value_or(0) != 0 && ring == RingState::active) ring = RingState::paused;
                 });
  }

  void on_process(std::uint64_t, ProcessAction, const ProcessRecord&) override {}
  void on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) override {
    rings_.add(slot, process, 0, std::move(ring), monotonic_ns());
  }
  void on_image_end(const ImageEnd&) override {}

  helper::HelperProcess helper_;
  helper::Closers closers_{helper_};
  Registry registry_;
  helper::HelperQueries queries_;
  ProcessTable processes_;
  BinaryCache cache_;
  Inspector inspector_;
  RingPoller rings_;
  Discovery discovery_;
  double seconds_ = 1;
};

int run_ps(const ProcessOptions& options) {
  const kernel::HostFeatures host = kernel::inspect_view();
  if (const kernel::Feature* feature = host.blocking())
    return report(
        {.what = "cannot inspect processes", .why = feature->name + ": " + feature->found, .hint = feature->hint});
  for (const kernel::Feature& feature : host.features) {
    if (feature.status == kernel::FeatureStatus::ok) continue;
    say(fmt::format("rtev-bpf: {}: {}\nhint: {}\n", feature.name, feature.found, feature.hint));
  }
  auto helper = helper::HelperProcess::start();
  if (!helper) return report(helper.error());
  ProcessLister processes({.filter = {.pids = options.pids, .name_globs = options.names},
                           .since_ns = UINT64_MAX,
                           .ring_descriptors = raise_file_limit() / 2},
                          std::move(*helper));
  processes.run(options.duration.value_or(default_sample));
  processes.print();
  return exit_ok;
}

}  // namespace

Subcommand add_ps_command(CLI::App& root) {
  auto options = std::make_shared<ProcessOptions>();
  CLI::App* const app =
      root.add_subcommand("ps", "list OCaml 5 processes: version, state of the ring, domains, events per second");
  app->footer(footer);
  add_process_options(*app, *options);
  app->get_option("--duration")->description("count events for this time, e.g. 2s (default: 500ms)");
  return {.app = app, .run = [options](const Invocation&) { return run_ps(*options); }};
}

}  // namespace rtev::cli
