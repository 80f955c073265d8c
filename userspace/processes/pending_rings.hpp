// SPDX-License-Identifier: MIT
// Rings that were announced and are not read yet: their file is not mapped, or its header is not written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "inspect/file_place.hpp"
#include "processes/opened_ring.hpp"

namespace rtev {

/// At most one a process; looked at again and again, less and less often, for two seconds.
class Births {
 public:
  struct Birth {
    std::uint64_t time_ns = 0;                      ///< when the ring was announced
    std::string comm{};                             ///< of the process then
    std::vector<PinnedRing> pins{};                 ///< what the process mapped then
    std::optional<FilePlace> place{};               ///< where the ring lies
    std::optional<FilePlace> program{};             ///< that the process ran then
    std::optional<std::int64_t> clock_offset_ns{};  ///< of the ring's times, where the kernel side told
    bool over = false;  ///< the end of its program is known already, and what was pinned may be the next one's
    /// When the scan found the process, if that was after the announcement: it may have run its next program then.
    std::uint64_t found_ns = 0;
    std::uint64_t first_try_ns = 0;  ///< by look()
    std::uint64_t next_try_ns = 0;
    std::uint64_t pause_ns = 0;
  };

  /// One that still waits is given up: its process has made another ring since. Unless it is the same ring: where files
  /// lie in huge pages, the kernel looks for room twice.
  void add(std::int32_t pid, Birth birth) {
    const auto found = waiting_.find(pid);
    if (found != waiting_.end() && !is_same_file(found->second, birth)) ++given_up_;
    waiting_.insert_or_assign(pid, std::move(birth));
  }

  /// Calls attempt(pid, birth, is_last) for each whose turn it is; true from it means that the birth is dealt with.
  /// Those that time is up for get a last attempt; then they are given up and counted.
  template <typename Attempt>
  void look(std::uint64_t now_ns, Attempt&& attempt) {
    for (auto entry = waiting_.begin(); entry != waiting_.end();) {
      auto& [pid, birth] = *entry;
      bool done = false;
      if (now_ns >= birth.next_try_ns) {
        birth.pause_ns = std::clamp(2 * birth.pause_ns, shortest_pause_ns, longest_pause_ns);
        birth.next_try_ns = now_ns + birth.pause_ns;
        // Not since it was announced: on a busy host news may take longer than that, and those of its end, too.
        if (birth.first_try_ns == 0) birth.first_try_ns = now_ns;
        const bool expired = now_ns > birth.first_try_ns + patience_ns;
        done = attempt(pid, birth, expired);
        given_up_ += !done && expired;
        done |= expired;
      }
      entry = done ? waiting_.erase(entry) : std::next(entry);
    }
  }

  /// Looks at the birth of one process now, whosever turn it is.
  template <typename Attempt>
  void look_at(std::int32_t pid, Attempt&& attempt) {
    const auto found = waiting_.find(pid);
    if (found != waiting_.end() && attempt(found->second)) waiting_.erase(found);
  }

  /// Takes the birth of a process that has ended, for a last attempt.
  std::optional<Birth> take(std::int32_t pid) {
    auto node = waiting_.extract(pid);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }
  /// The same, if it was announced before then.
  std::optional<Birth> take_before(std::int32_t pid, std::uint64_t time_ns) {
    const auto found = waiting_.find(pid);
    if (found == waiting_.end() || found->second.time_ns >= time_ns) return std::nullopt;
    return take(pid);
  }
  void give_up() { ++given_up_; }

  /// When look() has something to do again.
  std::optional<std::uint64_t> next_look_ns() const {
    std::optional<std::uint64_t> next;
    for (const auto& [pid, birth] : waiting_) next = std::min(next.value_or(birth.next_try_ns), birth.next_try_ns);
    return next;
  }
  /// When the first of those that wait was announced.
  std::optional<std::uint64_t> oldest_ns() const {
    std::optional<std::uint64_t> oldest;
    for (const auto& [pid, birth] : waiting_) oldest = std::min(oldest.value_or(birth.time_ns), birth.time_ns);
    return oldest;
  }
  /// Rings that were announced and could never be read.
  std::uint64_t given_up() const { return given_up_; }

 private:
  // Most rings are ready within a millisecond; others never will be.
  static constexpr std::uint64_t shortest_pause_ns = 100'000, longest_pause_ns = 50'000'000;
  static constexpr std::uint64_t patience_ns = 2'000'000'000;

  static bool is_same_file(const Birth& one, const Birth& other) {
    return one.place && other.place && one.place->device == other.place->device &&
           one.place->inode == other.place->inode;
  }

  std::map<std::int32_t, Birth> waiting_;
  std::uint64_t given_up_ = 0;
};

}  // namespace rtev
