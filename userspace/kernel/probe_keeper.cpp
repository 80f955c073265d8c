// SPDX-License-Identifier: MIT
#include "kernel/probe_keeper.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace rtev::kernel {
namespace {

constexpr std::uint64_t unused_patience_ns = 60'000'000'000;

}  // namespace

ProbeKeeper::~ProbeKeeper() {
  std::vector<BinaryProbes> all;
  for (auto& [id, known] : known_) {
    if (known.probes) all.push_back(std::move(*known.probes));
  }
  detach_in_parallel(std::move(all));
}

void ProbeKeeper::attach(int fd, std::uint32_t binary_id, std::span<const ProbeSite> sites) {
  if (sites.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!known_.try_emplace(binary_id).second) return;
  }
  // Not under the lock: the kernel visits every process that maps the file.
  auto probes = programs_.attach_probes(fd, binary_id, sites);
  const std::lock_guard lock(mutex_);
  if (probes) {
    skipped_ += probes->skipped();
    known_[binary_id].probes = std::move(*probes);
  } else {
    ++failed_;
    last_error_ = std::move(probes.error());
  }
}

void ProbeKeeper::detach_unused(const std::set<std::uint32_t>& in_use, std::uint64_t now_ns) {
  std::vector<BinaryProbes> unused;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = known_.begin(); entry != known_.end();) {
      Known& known = entry->second;
      if (in_use.contains(entry->first))
        known.unused_since_ns = 0;
      else if (known.unused_since_ns == 0)
        known.unused_since_ns = now_ns;
      const bool expired = known.unused_since_ns != 0 && now_ns - known.unused_since_ns > unused_patience_ns;
      if (expired && known.probes) unused.push_back(std::move(*known.probes));
      entry = expired ? known_.erase(entry) : std::next(entry);
    }
  }
  detach_in_parallel(std::move(unused));
}

std::size_t ProbeKeeper::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

std::optional<Error> ProbeKeeper::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

std::size_t ProbeKeeper::skipped() const {
  const std::lock_guard lock(mutex_);
  return skipped_;
}

std::size_t ProbeKeeper::slow_to_detach() const {
  if (programs_.uses_uprobe_multi()) return 0;
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(known_, [](const auto& entry) { return entry.second.probes.has_value(); }));
}

}  // namespace rtev::kernel
