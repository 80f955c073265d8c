// SPDX-License-Identifier: MIT
// Finds OCaml processes and follows them: combines the scan of /proc with the lifecycle records of the kernel.
//
// Subscribe first, scan second, rescan for ever: neither a process that starts during a scan nor a dropped record makes
// a process invisible. What a scan finds counts only once all records from before have been taken, since these say
// more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_set>

#include "bpf/records.h"
#include "processes/discovery_context.hpp"
#include "processes/exit_tracker.hpp"
#include "processes/host_scan.hpp"
#include "processes/lifecycle_lookup.hpp"
#include "processes/program_identifier.hpp"
#include "processes/rings/ring_acquisition.hpp"

namespace rtev {

/// The ways in which a process comes into view, changes and ends. What each of them means is decided by the parts:
/// ProcessTable, ProgramIdentifier, RingAcquisition and ExitTracker. One thread; times are ns of CLOCK_MONOTONIC.
class Discovery {
 public:
  Discovery(DiscoveryContext context, DiscoveryOptions options);
  ~Discovery();

  /// Begins to look at processes, to find those whose records were dropped.
  void begin_scan(ScanScope scope) { scan_.begin(scope); }
  /// Asks about some of them. What is found is taken by tick().
  void scan_some(std::size_t max_processes) { scan_.ask_some(max_processes); }
  /// True until all processes have been looked at, and tick() has taken all that was found.
  bool is_scanning() const { return scan_.is_active(); }
  /// Takes one lifecycle record, in the order of the records.
  void take(ResolvedRecord event);
  /// Continues with what scans found, with processes whose binaries have been inspected, and with pending rings. All
  /// records from before `records_complete_until_ns` have been taken; 0: not known. If some wait for their look-up, the
  /// first of them was read at `records_wait_since_ns`.
  void tick(std::uint64_t now_ns, std::uint64_t records_complete_until_ns,
            std::optional<std::uint64_t> records_wait_since_ns = std::nullopt);

  /// Since when events may lack what names them.
  std::optional<std::uint64_t> unnamed_since(std::uint64_t now_ns) const;
  /// Since when rings may be written that are not open yet.
  std::optional<std::uint64_t> unopened_since() const { return rings_.unopened_since(); }
  /// Rings that processes announced and that were never readable.
  std::uint64_t rings_missed() const { return rings_.missed(); }
  const ExitTracker& exits() const { return exits_; }
  /// Processes that did not answer, and rings that were not opened because their file system may not answer.
  std::uint64_t unreadable() const { return scan_.unreported() + rings_.unreadable(); }

 private:
  /// How a process came into view.
  struct Origin {
    ProcessAction action;
    std::uint64_t time_ns = 0;
    std::uint32_t generation = 0;
    bool has_ring = false;
    bool followed = false;
    std::optional<std::uint32_t> max_rss_before{};  ///< see TracedProcess
  };
  /// A process that was no OCaml program, or gone, or not looked at when its exec was taken. The record of its ring may
  /// follow.
  struct Forgotten {
    Origin origin;
    std::uint64_t start_ticks;
    std::uint64_t time_ns;
  };
  void end_gone(const std::unordered_set<std::int32_t>& alive, std::uint64_t listed_ns);
  void add_silent(std::int32_t pid, std::uint32_t user, const ProcessStat& stat);
  void look_for_renamed_ring(const TracedProcess& process);
  TracedProcess* find(std::int32_t pid, std::uint64_t since_ns);
  void take_found(std::uint64_t now_ns, std::uint64_t records_complete_until_ns);
  void add_found(HostScan::Found found, std::uint64_t time_ns);
  /// False for what the first scan found: it is older than the session.
  bool is_new(std::uint64_t found_ns) const { return found_ns > first_scan_end_ns_; }
  void on_exec(ResolvedRecord& event);
  void on_fork(const rtev_lifecycle& record);
  void on_exit(const rtev_lifecycle& record);
  void on_ring(ResolvedRecord& event);
  void on_probe(const rtev_lifecycle& record);
  void on_paused(const rtev_lifecycle& record);
  void take_inspected();
  std::optional<std::uint64_t> next_tick_ns(std::uint64_t now_ns) const;

  TracedProcess* ensure(std::int32_t pid, Image image, const Origin& origin);
  TracedProcess new_process(std::int32_t pid, Image image, const Origin& origin) const;
  bool settle(TracedProcess& process, ProgramIdentifier::Outcome outcome);
  void add_to_stream(TracedProcess& process);
  void add_program_info(TracedProcess& process);
  void force_version(ProcessInfo& info) const;
  void track(const TracedProcess& process);
  void end(std::int32_t pid, std::uint64_t time_ns, std::int64_t status, std::uint32_t max_rss_pages = 0);
  void report(const TracedProcess& process, std::uint64_t time_ns, ProcessAction action, std::int32_t peer = 0,
              std::int64_t detail = 0);

  DiscoveryContext context_;
  DiscoveryOptions options_;
  ProgramIdentifier identifier_;
  RingAcquisition rings_;
  ExitTracker exits_;
  HostScan scan_;
  std::map<std::int32_t, Forgotten> forgotten_;  ///< until all records from before that are taken
  std::uint64_t first_scan_end_ns_ = UINT64_MAX;
  std::uint64_t last_record_ns_ = 0;
  TimedTask ticking_;  ///< while something waits for records, or to be tried again
};

}  // namespace rtev
