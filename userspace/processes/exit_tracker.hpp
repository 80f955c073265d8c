// SPDX-License-Identifier: MIT
// How processes end, where their exit record is early, late or dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "inspect/binary_cache.hpp"
#include "processes/traced_process.hpp"

namespace rtev {

/// Exits, suspected exits, and processes that ended before their program was identified. Reads nothing from /proc and
/// changes no process: it tells the caller which ones to end. One thread.
class ExitTracker {
 public:
  struct ProcessId {
    std::int32_t pid;
    std::uint64_t start_ticks;
    bool operator==(const ProcessId&) const = default;
  };

  /// An exit record was read. The kernel reports the exit while the process still has its memory, and on a busy host it
  /// stays in /proc for a while: a scan must not find it again.
  void note_exit(const ProcessId& process) { exited_.insert_or_assign(process.pid, process.start_ticks); }
  bool has_exited(const ProcessId& process) const;
  /// Forgets exits of processes that are not in /proc any more.
  void forget_gone(const std::unordered_set<std::int32_t>& alive);

  /// A process was found gone, while the record of its exit may still be on its way.
  void suspect(const ProcessId& process, std::uint64_t now_ns) { suspected_.push_back({process, now_ns}); }
  /// Suspects whose exit record will not arrive, because all records from before the suspicion have been taken. Each is
  /// returned once. Forgets suspects for which is_current is false: they have ended otherwise.
  std::vector<ProcessId> confirm(std::uint64_t records_complete_until_ns,
                                 const std::function<bool(const ProcessId&)>& is_current);
  bool has_suspects() const { return !suspected_.empty(); }

  /// Keeps an image that ended while its program was being inspected: its events wait for their names.
  void keep_unresolved(TracedProcess process) { exited_unresolved_.push_back(std::move(process)); }
  /// Forgets those that have waited for too long.
  void expire_unresolved(std::uint64_t now_ns);
  /// See ProcessTable.
  std::optional<std::uint64_t> unnamed_since(std::uint64_t now_ns) const;

  /// Counts an image that SIGABRT ended before it had a ring: OCaml's runtime does that when it cannot create one. If
  /// it is not known yet whether it was an OCaml program, take_resolved() decides.
  void note_end(const TracedProcess& process, std::int64_t wait_status);
  std::uint64_t aborted_without_ring() const { return aborted_without_ring_; }
  /// True while programs that aborted are being inspected.
  bool inspects_aborted() const { return !aborted_inspecting_.empty(); }

  /// A file was inspected, with no binary if it is not an OCaml program: returns the unresolved images that waited for
  /// it, and counts aborts of this program.
  std::vector<TracedProcess> take_resolved(const FileIdentity& file, const std::shared_ptr<const Binary>& binary);

 private:
  struct SuspectedExit {
    ProcessId process;
    std::uint64_t noticed_ns;
  };
  std::unordered_map<std::int32_t, std::uint64_t> exited_;  ///< pid and start time
  std::vector<SuspectedExit> suspected_;
  std::vector<TracedProcess> exited_unresolved_;
  std::uint64_t aborted_without_ring_ = 0;
  std::vector<FileIdentity> aborted_inspecting_;
};

}  // namespace rtev
