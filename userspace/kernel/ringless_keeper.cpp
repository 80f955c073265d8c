// SPDX-License-Identifier: MIT
#include "kernel/ringless_keeper.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/clock.hpp"

namespace rtev::kernel {
namespace {

/// The next process of a binary may be short, so its probes wait for it.
constexpr std::uint64_t unused_patience_ns = 60'000'000'000;

}  // namespace

RinglessKeeper::~RinglessKeeper() {
  std::vector<UprobeLink> links;
  for (auto& [id, known] : known_) std::ranges::move(known.links, std::back_inserter(links));
  destroy_in_parallel(std::move(links));
}

void RinglessKeeper::learn(int fd, std::uint32_t binary_id, const RinglessSites& sites) {
  {
    const std::lock_guard lock(mutex_);
    if (known_.contains(binary_id)) return;
    Known& known = known_[binary_id];
    known.file = UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    known.sites = sites;
    known.wanted = wanted_.erase(binary_id) > 0;
    if (!known.wanted) return;
  }
  attach(binary_id);
}

bool RinglessKeeper::want(std::uint32_t binary_id) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(binary_id);
  if (found == known_.end()) {
    wanted_.insert(binary_id);
    return false;
  }
  Known& known = found->second;
  known.unused_since_ns = 0;
  if (std::exchange(known.wanted, true)) return false;
  return !known.failure;
}

Result<std::vector<UprobeLink>> RinglessKeeper::put_on(int file, std::uint32_t binary_id, const RinglessSites& sites,
                                                       std::uint32_t round) {
  if (sites.sites.empty()) return std::unexpected(Error{.what = "cannot probe", .why = sites.why_not});
  rtev_ringless_binary facts = sites.facts;
  facts.round = round;
  if (auto described = programs_.describe(binary_id, facts); !described)
    return std::unexpected(std::move(described.error()));
  return programs_.attach(file, binary_id, sites.sites);
}

void RinglessKeeper::attach(std::uint32_t binary_id) {
  int file = -1;
  RinglessSites sites;
  std::uint32_t round = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(binary_id);
    if (found == known_.end()) return;
    Known& known = found->second;
    if (!known.wanted || known.failure || known.busy || !known.links.empty()) return;
    known.busy = true;
    file = known.file.get();
    sites = known.sites;
    round = ++known.round;
  }
  // Not under the lock: the kernel visits every process that maps the file. An entry that is busy stays.
  auto links = put_on(file, binary_id, sites, round);
  const std::uint64_t now = monotonic_ns();
  const std::lock_guard lock(mutex_);
  Known& known = known_.at(binary_id);
  known.busy = false;
  if (links) {
    known.links = std::move(*links);
    known.probed_since_ns = now;
    changes_.push_back({.binary = binary_id, .on = true, .time_ns = now});
  } else {
    known.failure = std::move(links.error().why);
  }
}

void RinglessKeeper::detach(std::uint32_t binary_id) {
  std::vector<UprobeLink> links;
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(binary_id);
    if (found == known_.end() || found->second.links.empty()) return;
    found->second.wanted = false;
    changes_.push_back({.binary = binary_id, .on = false, .time_ns = monotonic_ns()});
    links = std::exchange(found->second.links, {});
  }
  destroy_in_parallel(std::move(links));
}

void RinglessKeeper::detach_unused(const std::set<std::uint32_t>& in_use, std::uint64_t now_ns) {
  std::vector<UprobeLink> links;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = known_.begin(); entry != known_.end();) {
      Known& known = entry->second;
      if (in_use.contains(entry->first))
        known.unused_since_ns = 0;
      else if (known.unused_since_ns == 0)
        known.unused_since_ns = now_ns;
      const bool expired =
          !known.busy && known.unused_since_ns != 0 && now_ns - known.unused_since_ns > unused_patience_ns;
      if (expired) {
        if (!known.links.empty()) changes_.push_back({.binary = entry->first, .on = false, .time_ns = now_ns});
        std::ranges::move(known.links, std::back_inserter(links));
        programs_.forget(entry->first);
      }
      entry = expired ? known_.erase(entry) : std::next(entry);
    }
  }
  destroy_in_parallel(std::move(links));
}

std::vector<RinglessKeeper::Change> RinglessKeeper::take_changes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(changes_, {});
}

std::optional<std::uint64_t> RinglessKeeper::probed_since(std::uint32_t binary_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(binary_id);
  if (found == known_.end() || found->second.links.empty()) return std::nullopt;
  return found->second.probed_since_ns;
}

std::optional<std::string> RinglessKeeper::failure(std::uint32_t binary_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(binary_id);
  return found == known_.end() ? std::nullopt : found->second.failure;
}

}  // namespace rtev::kernel
