// SPDX-License-Identifier: MIT
#include "session/rootless/ring_finder.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "processes/process_table.hpp"
#include "processes/traced_process.hpp"

namespace rtev {
namespace {

/// How often to look at a process of -p: it may make a ring, or run another program.
constexpr std::uint64_t look_interval_ns = 50'000'000, seldom_look_interval_ns = 250'000'000;

/// How often to list the directory, where the kernel does not tell of new files.
constexpr std::uint64_t listing_interval_ns = 2'000'000;

/// How often to try a ring whose header is not valid yet: it is within microseconds, unless its program waits.
constexpr std::uint64_t ready_interval_ns = 500'000, slow_retry_interval_ns = 50'000'000;

}  // namespace

RingFinder::RingFinder(ProcessQueries& queries, const std::optional<FollowedCommand>& command,
                       const std::vector<std::int32_t>& pids, IsRead is_read)
    : queries_(queries), is_read_(std::move(is_read)) {
  procfs_.set_careful(true);
  if (command) {
    directory_.emplace(command->directory);
    return;
  }
  for (const std::int32_t pid : pids) chosen_.try_emplace(pid);
}

void RingFinder::look(std::uint64_t now_ns, bool now) {
  if (directory_) {
    if (directory_->event_fd() < 0) {
      if (now_ns < next_listing_ns_ && !now) return;
      next_listing_ns_ = now_ns + listing_interval_ns;
    }
    for (const std::int32_t pid : directory_->take()) add(pid);
  }
  for (auto& [pid, chosen] : chosen_) {
    if (chosen.is_asked || now_ns < chosen.next_look_ns) continue;
    chosen.is_asked = true;
    queries_.ask({.pid = pid, .image = true, .mapped_rings = true}, ::getuid(),
                 [this, pid](ProcessView view) { take_look(pid, std::move(view)); });
  }
}

void RingFinder::look_again(std::int32_t pid, std::uint64_t now_ns) {
  if (directory_) return add(pid);
  if (const auto chosen = chosen_.find(pid); chosen != chosen_.end()) chosen->second.next_look_ns = now_ns;
}

/// A file of the directory.
void RingFinder::add(std::int32_t pid) {
  OpenedRing ring = directory_->open(pid);
  const auto file = ring.fd ? identify_ring(ring.fd.get()) : std::nullopt;
  // A file that is read is reported again when the runtime sets its size. Another program in it is seen by reading it.
  if (!file || is_read_(ring, pid)) return;
  const bool is_known = std::ranges::any_of(found_, [&](const FoundRings& known) {
    return std::ranges::any_of(known.rings, [&](const OpenedRing& one) { return identify_ring(one.fd.get()) == file; });
  });
  if (is_known) return;
  const std::uint64_t now = monotonic_ns();
  found_.push_back({.pid = pid, .found_ns = now, .is_new = true, .rings = {}});
  found_.back().rings.push_back(std::move(ring));
  // Also at once, as far as that cannot wait: it may end before the helper looks.
  const auto stat = procfs_.stat(pid);
  Image& image = found_.back().at_first;
  if (stat) {
    image.start_ticks = stat->start_ticks;
    image.comm = stat->comm;
  }
  if (auto program = procfs_.open_exe(pid)) image.file = std::move(*program);
  image.exe = procfs_.exe_path(pid);
  if (runs_another_file(image.exe)) image.script = script_of(image.exe, procfs_.raw_arguments(pid));
  queries_.ask({.pid = pid, .image = true}, ::getuid(), [this, pid, now](ProcessView view) {
    const auto asked =
        std::ranges::find_if(found_, [&](const FoundRings& one) { return one.pid == pid && one.found_ns == now; });
    if (asked == found_.end()) return;
    const bool has_ended =
        !view.stat || view.image.exe.empty() || view.image.start_ticks != asked->at_first.start_ticks;
    if (has_ended) view.image = std::move(asked->at_first);
    asked->view = std::move(view);
  });
}

void RingFinder::take_look(std::int32_t pid, ProcessView view) {
  Chosen& chosen = chosen_[pid];
  const std::uint64_t now = monotonic_ns();
  chosen.is_asked = false;
  chosen.next_look_ns = now + (view.rings.empty() ? look_interval_ns : seldom_look_interval_ns);
  if (!view.stat) return;
  std::erase_if(found_, [pid](const FoundRings& one) { return one.pid == pid; });
  FoundRings found{.pid = pid, .found_ns = now, .is_new = chosen.was_looked_at, .rings = std::move(view.rings)};
  found.view = std::move(view);
  found_.push_back(std::move(found));
  chosen.was_looked_at = true;
}

bool RingFinder::has_found(std::int32_t pid) const {
  return std::ranges::any_of(found_, [pid](const FoundRings& one) { return one.pid == pid; });
}

std::optional<std::uint64_t> RingFinder::unopened_since() const {
  std::optional<std::uint64_t> since;
  for (const FoundRings& one : found_)
    if (one.is_soon_ready() && !one.rings.empty()) since = earliest(since, one.found_ns);
  return since;
}

bool RingFinder::has_looked_at_all() const {
  return std::ranges::all_of(chosen_,
                             [](const auto& one) { return one.second.was_looked_at || !is_running(one.first); });
}

std::optional<std::uint64_t> RingFinder::next_look_ns(std::uint64_t now_ns) const {
  std::optional<std::uint64_t> next;
  if (directory_ && directory_->event_fd() < 0) next = next_listing_ns_;
  for (const FoundRings& one : found_)
    if (one.view) next = earliest(next, now_ns + (one.is_soon_ready() ? ready_interval_ns : slow_retry_interval_ns));
  for (const auto& [pid, chosen] : chosen_)
    if (!chosen.is_asked) next = earliest(next, chosen.next_look_ns);
  return next;
}

}  // namespace rtev
