// SPDX-License-Identifier: MIT
// Finds OCaml processes and follows them: combines the scan of /proc with the lifecycle records of the kernel.
//
// Subscribe first, scan second, be idempotent, rescan for ever: records and scan lead to the same ensure(), so neither
// a process that starts during the scan nor a dropped record makes a process invisible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "bpf/records.h"
#include "inspect/inspector.hpp"
#include "inspect/procfs.hpp"
#include "processes/exit_tracker.hpp"
#include "processes/kernel_control.hpp"
#include "processes/lifecycle_lookup.hpp"
#include "processes/process_events.hpp"
#include "processes/process_table.hpp"
#include "processes/program_identifier.hpp"
#include "processes/rings/ring_acquisition.hpp"
#include "stream/registry.hpp"

namespace rtev {

struct DiscoveryOptions {
  ProcessFilter filter{};
  bool history = false;          ///< deliver what rings held before they were opened
  std::uint64_t since_ns = 0;    ///< rings created later are read from their beginning in any case
  bool even_gone = false;        ///< also processes that turn out to be OCaml programs only after their end
  std::string forced_version{};  ///< decode with this version's table; empty: find out
};

/// What Discovery works with. All must outlive it.
struct DiscoveryContext {
  Procfs procfs;
  Registry& registry;
  ProcessTable& processes;
  BinaryCache& cache;
  Inspector& inspector;
  ProcessEvents& events;
  KernelControl& kernel;
  std::function<std::uint64_t()> clock = monotonic_ns;
};

/// The ways in which a process comes into view, changes and ends. What each of them means is decided by the parts:
/// ProcessTable, ProgramIdentifier, RingAcquisition and ExitTracker. One thread; times are ns of CLOCK_MONOTONIC.
class Discovery {
 public:
  Discovery(DiscoveryContext context, DiscoveryOptions options);

  /// Begins to look at all processes, to find those whose records were dropped.
  void begin_scan(std::uint64_t now_ns);
  /// Looks at some of them; false once all have been looked at.
  bool scan_some(std::uint64_t now_ns, std::size_t max_processes);
  /// Takes one lifecycle record, in the order of the records.
  void take(LifecycleEvent event);
  /// Continues with processes whose binaries have been inspected, and with pending rings. All records from before
  /// `records_complete_until_ns` have been taken.
  void tick(std::uint64_t now_ns, std::uint64_t records_complete_until_ns);
  /// When tick() has something to do again, as far as only time decides.
  std::optional<std::uint64_t> next_tick_ns() const;

  /// Events since then may still lack what names them: the program of their ring is being inspected.
  std::optional<std::uint64_t> unnamed_since(std::uint64_t now_ns) const;
  /// Since when rings may be written that are not open yet.
  std::optional<std::uint64_t> unopened_since() const { return rings_.unopened_since(); }
  /// Rings that processes announced and that were never readable.
  std::uint64_t rings_missed() const { return rings_.missed(); }
  const ExitTracker& exits() const { return exits_; }

 private:
  /// How a process came into view.
  struct Origin {
    ProcessAction action;
    std::uint64_t time_ns = 0;
    std::uint32_t generation = 0;
    bool has_ring = false;
    bool followed = false;
  };
  void look_at(std::int32_t pid, std::uint64_t now_ns);
  void on_exec(LifecycleEvent& event);
  void on_fork(const rtev_lifecycle& record);
  void on_exit(const rtev_lifecycle& record);
  void on_ring(LifecycleEvent& event);
  void on_probe(const rtev_lifecycle& record);
  void take_inspected();

  TracedProcess* ensure(std::int32_t pid, Image image, const Origin& origin);
  bool settle(TracedProcess& process, ProgramIdentifier::Outcome outcome);
  void add_to_stream(TracedProcess& process);
  void add_program_info(TracedProcess& process);
  void force_version(ProcessInfo& info) const;
  void track(const TracedProcess& process);
  void add_replaced_image(const TracedProcess& later, PendingRing ring, std::uint64_t ended_ns);
  void end(std::int32_t pid, std::uint64_t time_ns, std::int64_t status, std::uint32_t max_rss_pages = 0);
  void conclude(TracedProcess& process, std::uint64_t time_ns, bool by_exec);
  void report(const TracedProcess& process, std::uint64_t time_ns, ProcessAction action, std::int32_t peer = 0,
              std::int64_t detail = 0);

  Procfs procfs_;
  Registry& registry_;
  ProcessTable& processes_;
  BinaryCache& cache_;
  Inspector& inspector_;
  ProcessEvents& events_;
  KernelControl& kernel_;
  std::function<std::uint64_t()> clock_;
  DiscoveryOptions options_;
  ProgramIdentifier identifier_;
  RingAcquisition rings_;
  ExitTracker exits_;
  std::vector<std::int32_t> to_scan_;
  bool scanned_ = false;  ///< at least once: what a later scan finds is new
};

}  // namespace rtev
