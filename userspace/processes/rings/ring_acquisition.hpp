// SPDX-License-Identifier: MIT
// Gets the rings of processes before they are gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "processes/discovery_context.hpp"
#include "processes/rings/pending_rings.hpp"
#include "processes/rings/ring_opener.hpp"

namespace rtev {

/// Each announced ring is opened through the mappings of its process, or from what BPF saved of it, or found again by
/// its place on disk; else it is counted as missed. Reports the rings that it opens. One thread.
class RingAcquisition {
 public:
  /// Both must outlive it.
  RingAcquisition(const DiscoveryContext& context, const DiscoveryOptions& options)
      : context_(context), opener_(context, options) {}

  /// Opens rings that a scan found the process to map. `created_now`: while the tracer was running. False if none is
  /// new and ready.
  bool open_found(TracedProcess& process, const std::vector<OpenedRing>& rings, std::uint64_t time_ns,
                  bool created_now);
  /// True if the process maps the ring of another one as its own: their pid namespaces differ, but neither their pids
  /// there nor their directory. Marks both rings as shared.
  bool mark_shared(TracedProcess& process, const std::vector<OpenedRing>& rings);

  /// A process announced a ring: opens it, or keeps it pending. True if it is open.
  bool announce(TracedProcess& process, PendingRing ring);
  /// The runtime of the process was seen to use its ring, so the ring is ready. True if it was pending and is open now.
  bool open_pending(TracedProcess& process);
  /// Tries pending rings whose turn it is. Calls `opened` for processes whose ring is open now.
  void retry(std::uint64_t now_ns, const std::function<void(const TracedProcess&)>& opened);

  /// The ring of the process will not be read. Nothing happens if another one of it is.
  void mark_unreadable(TracedProcess& process, const std::string& path, std::uint64_t time_ns, Unreadable why);
  /// The same if one of the rings is on a file system that may never answer. False if none is.
  bool mark_unreadable(TracedProcess& process, const std::vector<OpenedRing>& rings, std::uint64_t time_ns);
  std::uint64_t unreadable() const { return unreadable_; }

  /// The image ended: the last chance for its pending ring.
  void end_image(TracedProcess& process, std::uint64_t time_ns, bool by_exec);
  /// The files of an image that ended may be opened again, by another one.
  void forget(const TracedProcess& process);

  /// True if the last call of open_found() left out a ring that may be ready soon.
  bool is_not_ready() const { return opener_.not_ready(); }
  /// Since when rings may be written that are not open yet.
  std::optional<std::uint64_t> unopened_since() const { return pending_.oldest_ns(); }
  /// When retry() has something to do again.
  std::optional<std::uint64_t> next_try_ns() const { return pending_.next_try_ns(); }
  /// Rings that were announced and never readable, or not to their end.
  std::uint64_t missed() const { return missed_; }

 private:
  bool open(TracedProcess& process, const std::vector<OpenedRing>& rings, std::uint64_t time_ns,
            const RingOpener::Origin& origin);
  bool has_open(const TracedProcess& process, const PendingRing& ring) const;
  void note_mapped(TracedProcess& process, const RingOpener::Ring& ring, std::uint64_t time_ns, bool announced);
  bool try_open(TracedProcess& process, PendingRing& ring);
  void miss(TracedProcess& process);
  void look_again(const TracedProcess& process, PendingRing& ring);
  bool open_saved(TracedProcess& process, const PendingRing& ring, std::uint64_t ended_ns, bool by_exec);
  bool open_last(TracedProcess& process, PendingRing& ring, std::uint64_t ended_ns, bool by_exec);

  const DiscoveryContext& context_;
  RingOpener opener_;
  PendingRings pending_;
  std::uint64_t missed_ = 0, unreadable_ = 0;
  std::map<std::uint32_t, std::uint64_t> missed_of_users_;  ///< when the last one was missed, if that was not long ago
};

}  // namespace rtev
