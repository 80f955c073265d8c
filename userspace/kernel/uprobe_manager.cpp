// SPDX-License-Identifier: MIT
#include "kernel/uprobe_manager.hpp"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.hpp"

namespace rtev::kernel {
namespace {

constexpr std::uint64_t unused_timeout_ns = 60'000'000'000;

}  // namespace

UprobeManager::~UprobeManager() {
  std::vector<UprobeLink> links;
  for (auto& [id, binary] : binaries_) std::ranges::move(binary.links, std::back_inserter(links));
  destroy_in_parallel(std::move(links));
}

void UprobeManager::add(int file, std::uint32_t binary_id, ProbePlan plan) {
  if (plan.sites.empty() && plan.why_not.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = binaries_.try_emplace(binary_id);
    if (!is_new) return;
    Binary& binary = entry->second;
    binary.file = UniqueFd(::fcntl(file, F_DUPFD_CLOEXEC, 0));
    binary.plan = std::move(plan);
    binary.requested = requested_.erase(binary_id) > 0 || policy_ == AttachPolicy::at_once;
    if (!binary.requested) return;
  }
  attach(binary_id);
}

bool UprobeManager::request(std::uint32_t binary_id) {
  const std::lock_guard lock(mutex_);
  const auto found = binaries_.find(binary_id);
  if (found == binaries_.end()) {
    requested_.insert(binary_id);
    return false;
  }
  Binary& binary = found->second;
  binary.unused_since_ns = 0;
  if (std::exchange(binary.requested, true)) return false;
  return !binary.failure;
}

void UprobeManager::attach(std::uint32_t binary_id) {
  int file = -1;
  ProbePlan plan;
  std::uint32_t round = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = binaries_.find(binary_id);
    if (found == binaries_.end()) return;
    Binary& binary = found->second;
    if (!binary.requested || binary.failure || binary.attaching || !binary.links.empty()) return;
    binary.attaching = true;
    file = binary.file.get();
    plan = binary.plan;
    round = ++binary.round;
  }
  // Not under the lock: the kernel visits every process that maps the file. An entry is not erased while attaching.
  auto attached = plan.sites.empty() ? std::unexpected(Error{.what = "cannot probe", .why = plan.why_not})
                                     : programs_.probe(file, binary_id, plan, round);
  const std::uint64_t now = monotonic_ns();
  const std::lock_guard lock(mutex_);
  Binary& binary = binaries_.at(binary_id);
  binary.attaching = false;
  if (policy_ == AttachPolicy::at_once) binary.file.reset();  // not needed again
  if (!attached) {
    ++figures_.failed;
    binary.failure = attached.error().why;
    figures_.last_error = std::move(attached.error());
    return;
  }
  figures_.skipped += attached->skipped;
  binary.links = std::move(attached->links);
  binary.attached_since_ns = now;
  note_change({.binary = binary_id, .attached = true, .time_ns = now});
}

void UprobeManager::detach(std::uint32_t binary_id) {
  std::vector<UprobeLink> links;
  {
    const std::lock_guard lock(mutex_);
    const auto found = binaries_.find(binary_id);
    if (found == binaries_.end() || found->second.links.empty()) return;
    found->second.requested = false;
    note_change({.binary = binary_id, .attached = false, .time_ns = monotonic_ns()});
    links = std::exchange(found->second.links, {});
  }
  destroy_in_parallel(std::move(links));
}

void UprobeManager::detach_unused(const std::set<std::uint32_t>& in_use, std::uint64_t now_ns) {
  std::vector<UprobeLink> links;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = binaries_.begin(); entry != binaries_.end();) {
      auto& [id, binary] = *entry;
      if (in_use.contains(id))
        binary.unused_since_ns = 0;
      else if (binary.unused_since_ns == 0)
        binary.unused_since_ns = now_ns;
      const bool expired =
          !binary.attaching && binary.unused_since_ns != 0 && now_ns - binary.unused_since_ns > unused_timeout_ns;
      if (expired) {
        if (!binary.links.empty()) note_change({.binary = id, .attached = false, .time_ns = now_ns});
        std::ranges::move(binary.links, std::back_inserter(links));
        programs_.forget(id);
      }
      entry = expired ? binaries_.erase(entry) : std::next(entry);
    }
  }
  destroy_in_parallel(std::move(links));
}

void UprobeManager::note_change(const Change& change) {
  if (policy_ == AttachPolicy::on_request) changes_.push_back(change);
}

std::vector<UprobeManager::Change> UprobeManager::take_changes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(changes_, {});
}

std::optional<std::uint64_t> UprobeManager::attached_since(std::uint32_t binary_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = binaries_.find(binary_id);
  if (found == binaries_.end() || found->second.links.empty()) return std::nullopt;
  return found->second.attached_since_ns;
}

std::optional<std::string> UprobeManager::failure(std::uint32_t binary_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = binaries_.find(binary_id);
  return found == binaries_.end() ? std::nullopt : found->second.failure;
}

UprobeManager::Figures UprobeManager::figures() const {
  const std::lock_guard lock(mutex_);
  Figures figures = figures_;
  figures.slow_to_detach = static_cast<std::size_t>(std::ranges::count_if(
      binaries_, [](const auto& entry) { return std::ranges::any_of(entry.second.links, is_slow_to_detach); }));
  return figures;
}

}  // namespace rtev::kernel
