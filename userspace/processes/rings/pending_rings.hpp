// SPDX-License-Identifier: MIT
// Rings that were announced and are not open yet: their file is not mapped, or its header is not written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "inspect/process_view.hpp"

namespace rtev {

struct PendingRing {
  std::uint64_t announced_ns = 0;            ///< when the kernel announced it
  std::vector<OpenedRing> opened{};          ///< what the process mapped then
  std::optional<AnnouncedRing> announced{};  ///< what the kernel reported of it
  std::optional<OpenedRing> placed{};        ///< see ProcessView
  std::string path{};                        ///< of the ring, where it was not found
  std::shared_ptr<const void> charge{};      ///< to its user, for descriptors
  bool asked = false;                        ///< its process is being looked at
  /// Its user has announced rings that were never found: it holds back no events, and is tried less often.
  bool distrusted = false;
  /// The end of its image was read already: what is in `opened` may belong to the next image.
  bool image_ended = false;
  /// Of the ring's times, where the kernel reported it.
  std::optional<std::int64_t> clock_offset_ns() const {
    return announced ? std::optional(announced->clock_offset_ns) : std::nullopt;
  }
  // Of PendingRings:
  std::uint64_t not_ready_ns = 0;  ///< when its file was looked at last: what is written in it is later
  std::uint64_t first_try_ns = 0;
  std::uint64_t next_try_ns = 0;
  std::uint64_t pause_ns = 0;
};

/// At most one ring a process; each is tried again and again, less and less often, for two seconds.
class PendingRings {
 public:
  /// False if the process's previous pending ring is missed, since the process has created another one. The same ring
  /// may be announced twice: for files in huge pages the kernel searches for address space twice.
  bool add(std::int32_t pid, PendingRing ring) {
    const auto found = rings_.find(pid);
    const bool misses = found != rings_.end() && !is_same_file(found->second, ring);
    if (ring.distrusted) ring.next_try_ns = ring.announced_ns + max_pause_ns;
    rings_.insert_or_assign(pid, std::move(ring));
    return !misses;
  }

  /// Calls try_open(pid, ring, is_last) for each ring whose turn it is; true from it removes the ring. Rings whose time
  /// is up get a last try; then they are removed.
  template <typename TryOpen>
  void retry(std::uint64_t now_ns, TryOpen&& try_open) {
    for (auto entry = rings_.begin(); entry != rings_.end();) {
      auto& [pid, ring] = *entry;
      bool done = false;
      if (now_ns >= ring.next_try_ns) {
        ring.pause_ns = ring.distrusted ? max_pause_ns : std::clamp(2 * ring.pause_ns, min_pause_ns, max_pause_ns);
        ring.next_try_ns = now_ns + ring.pause_ns;
        // Not since the announcement: on a busy host its record may be read later than that, and so may the record of
        // the process's end.
        if (ring.first_try_ns == 0) ring.first_try_ns = now_ns;
        const bool expired = now_ns > ring.first_try_ns + timeout_ns;
        done = try_open(pid, ring, expired);
        done |= expired;
        if (!ring.opened.empty()) ring.not_ready_ns = now_ns;
      }
      entry = done ? rings_.erase(entry) : std::next(entry);
    }
  }

  /// Calls try_open(ring) for the ring of one process, whether or not it is its turn.
  template <typename TryOpen>
  void retry_now(std::int32_t pid, TryOpen&& try_open) {
    const auto found = rings_.find(pid);
    if (found != rings_.end() && try_open(found->second)) rings_.erase(found);
  }

  /// The ring that the process announced then; null if it is not pending any more.
  PendingRing* find(std::int32_t pid, std::uint64_t announced_ns) {
    const auto found = rings_.find(pid);
    return found != rings_.end() && found->second.announced_ns == announced_ns ? &found->second : nullptr;
  }

  /// Removes the ring of a process whose image has ended, for a last try by the caller.
  std::optional<PendingRing> take(std::int32_t pid) {
    auto node = rings_.extract(pid);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }

  /// When retry() has something to do again.
  std::optional<std::uint64_t> next_try_ns() const {
    std::optional<std::uint64_t> next;
    for (const auto& [pid, ring] : rings_) next = std::min(next.value_or(ring.next_try_ns), ring.next_try_ns);
    return next;
  }
  /// Since when any of them may be written, of those that are trusted.
  std::optional<std::uint64_t> oldest_ns() const {
    std::optional<std::uint64_t> oldest;
    for (const auto& [pid, ring] : rings_) {
      if (ring.distrusted) continue;
      const std::uint64_t since_ns = std::max(ring.announced_ns, ring.not_ready_ns);
      oldest = std::min(oldest.value_or(since_ns), since_ns);
    }
    return oldest;
  }

 private:
  // Most rings are ready within a millisecond; others never will be. All events wait from one try to the next.
  static constexpr std::uint64_t min_pause_ns = 100'000, max_pause_ns = 20'000'000;
  static constexpr std::uint64_t timeout_ns = 2'000'000'000;

  static bool is_same_file(const PendingRing& one, const PendingRing& other) {
    return one.announced && other.announced && one.announced->place.device == other.announced->place.device &&
           one.announced->place.inode == other.announced->place.inode;
  }

  std::map<std::int32_t, PendingRing> rings_;
};

}  // namespace rtev
