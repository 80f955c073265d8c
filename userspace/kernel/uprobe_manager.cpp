// SPDX-License-Identifier: MIT
#include "kernel/uprobe_manager.hpp"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/clock.hpp"

namespace rtev::kernel {
namespace {

constexpr std::uint64_t unused_timeout_ns = 60'000'000'000;

/// The kernel's grace period is the same for one link and for many, so many are forgotten at a time.
constexpr UprobeManager::Bound after_making_room(const UprobeManager::Bound& bound) {
  return {.binaries = bound.binaries / 4 * 3, .descriptors = bound.descriptors / 4 * 3};
}

/// Links that wait to be destroyed: each is a descriptor.
constexpr std::size_t max_unused = 64;

/// Refused binaries that are remembered.
constexpr std::size_t max_refused = 4096;

}  // namespace

UprobeManager::~UprobeManager() {
  std::vector<UprobeLink> links;
  for (auto& [id, binary] : binaries_) std::ranges::move(binary.links, std::back_inserter(links));
  destroy_in_parallel(std::move(links));
}

void UprobeManager::add(int file, ProbedBinary added, ProbePlan plan) {
  if (plan.sites.empty() && plan.why_not.empty()) return;
  const std::uint32_t id = added.id;
  std::vector<UprobeLink> links;
  bool attaches = false;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = binaries_.find(id); known != binaries_.end()) {
      known->second.last_use = ++last_use_;
      return;
    }
    if (make_room(added, links)) {
      Binary& binary = binaries_[id];
      binary.of = std::move(added);
      binary.last_use = ++last_use_;
      if (!plan.sites.empty()) binary.file = UniqueFd(::fcntl(file, F_DUPFD_CLOEXEC, 0));
      binary.plan = std::move(plan);
      binary.requested = requested_.erase(id) > 0 || policy_ == AttachPolicy::at_once;
      attaches = binary.requested;
    }
  }
  destroy_later(std::move(links));
  if (attaches) attach(id);
}

bool UprobeManager::request(std::uint32_t binary_id) {
  const std::lock_guard lock(mutex_);
  const auto found = binaries_.find(binary_id);
  if (found == binaries_.end()) {
    if (!refused_.contains(binary_id)) requested_.insert(binary_id);
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
  std::vector<UprobeLink> links;
  {
    const std::lock_guard lock(mutex_);
    const auto found = binaries_.find(binary_id);
    if (found == binaries_.end()) return;
    Binary& binary = found->second;
    if (!binary.requested || binary.failure || binary.attaching || !binary.links.empty()) return;
    if (make_room(binary.of, links)) {
      binary.attaching = true;
      file = binary.file.get();
      plan = binary.plan;
      round = ++binary.round;
    } else {
      forget(found, monotonic_ns(), links);
    }
  }
  destroy_later(std::move(links));
  if (round == 0) return;
  // Not under the lock: the kernel visits every process that maps the file. An entry is not erased while attaching.
  auto attached = plan.sites.empty() ? std::unexpected(Error{.what = "cannot probe", .why = plan.why_not})
                                     : programs_.probe(file, binary_id, plan, round);
  const std::uint64_t now = monotonic_ns();
  const std::lock_guard lock(mutex_);
  Binary& binary = binaries_.at(binary_id);
  binary.attaching = false;
  if (policy_ == AttachPolicy::at_once || !attached) binary.file.reset();  // not needed again
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
      Binary& binary = entry->second;
      if (in_use.contains(entry->first))
        binary.unused_since_ns = 0;
      else if (binary.unused_since_ns == 0)
        binary.unused_since_ns = now_ns;
      const bool expired =
          !binary.attaching && binary.unused_since_ns != 0 && now_ns - binary.unused_since_ns > unused_timeout_ns;
      entry = expired ? forget(entry, now_ns, links) : std::next(entry);
    }
    std::erase_if(refused_, [&](const auto& refused) { return !in_use.contains(refused.first); });
  }
  destroy_in_parallel(std::move(links));
}

/// Under the lock, as are the following. Moves its links to `links`, to be destroyed without the lock.
UprobeManager::Entries::iterator UprobeManager::forget(Entries::iterator entry, std::uint64_t now_ns,
                                                       std::vector<UprobeLink>& links) {
  auto& [id, binary] = *entry;
  if (!binary.links.empty()) note_change({.binary = id, .attached = false, .time_ns = now_ns});
  std::ranges::move(binary.links, std::back_inserter(links));
  programs_.forget(id);
  return binaries_.erase(entry);
}

/// Whether binaries of this user (or of all) but `except` leave no room for another.
bool UprobeManager::is_full(std::optional<std::uint32_t> user, const Bound& bound, std::uint32_t except) const {
  Bound sum{.binaries = 0, .descriptors = 0};
  for (const auto& [id, binary] : binaries_) {
    if (id == except || (user && binary.of.user != *user)) continue;
    ++sum.binaries;
    sum.descriptors += (binary.file ? 1 : 0) + binary.links.size();
  }
  return sum.binaries >= bound.binaries || sum.descriptors >= bound.descriptors;
}

/// Forgets binaries that are not in use, until there is ample room. Of all users, of the one with the most first.
void UprobeManager::forget_unused(std::optional<std::uint32_t> user, const Bound& bound, std::uint32_t except,
                                  std::vector<UprobeLink>& links) {
  if (!is_full(user, bound, except)) return;
  std::map<std::uint32_t, std::size_t> by_user;
  for (const auto& [id, binary] : binaries_) ++by_user[binary.of.user];
  std::vector<Entries::iterator> unused;
  for (auto entry = binaries_.begin(); entry != binaries_.end(); ++entry) {
    const Binary& binary = entry->second;
    if (entry->first != except && (!user || binary.of.user == *user) && !binary.attaching && !binary.of.in_use())
      unused.push_back(entry);
  }
  std::ranges::sort(unused, {}, [&](const Entries::iterator& entry) {
    const Binary& binary = entry->second;
    return std::pair(-static_cast<std::int64_t>(by_user[binary.of.user]), binary.last_use);
  });
  const std::uint64_t now_ns = monotonic_ns();
  const Bound ample = after_making_room(bound);
  for (const Entries::iterator& entry : unused) {
    if (!is_full(user, ample, except)) return;
    forget(entry, now_ns, links);
  }
}

/// Makes room for a binary. False, and it is counted, if too many are in use.
bool UprobeManager::make_room(const ProbedBinary& binary, std::vector<UprobeLink>& links) {
  forget_unused(binary.user, user_bound, binary.id, links);
  forget_unused(std::nullopt, total_bound, binary.id, links);
  const bool user_is_full = is_full(binary.user, user_bound, binary.id);
  if (!user_is_full && !is_full(std::nullopt, total_bound, binary.id)) {
    refused_.erase(binary.id);
    return true;
  }
  requested_.erase(binary.id);
  if (refused_.size() >= max_refused) refused_.clear();
  Error error{.what = "cannot probe",
              .why = user_is_full ? "too many programs of one user run" : "too many programs run"};
  if (refused_.insert_or_assign(binary.id, error.why).second) ++figures_.failed;
  figures_.last_error = std::move(error);
  return false;
}

/// The caller goes on to attach: programs wait for that, and it does not need the grace period to be over. Waits only
/// if too many links wait for theirs.
void UprobeManager::destroy_later(std::vector<UprobeLink> links) {
  if (links.empty()) return;
  {
    const std::lock_guard lock(unused_mutex_);
    std::ranges::move(links, std::back_inserter(unused_));
    if (std::exchange(destroys_, true) && unused_.size() < max_unused) return;
  }
  const std::lock_guard lock(destroyer_mutex_);
  destroyer_ = {};
  try {
    destroyer_ = std::jthread([this] { destroy_unused(); });
  } catch (const std::system_error&) {
    destroy_unused();  // no more threads available
  }
}

void UprobeManager::destroy_unused() {
  while (true) {
    std::vector<UprobeLink> links;
    {
      const std::lock_guard lock(unused_mutex_);
      links = std::exchange(unused_, {});
      destroys_ = !links.empty();
      if (!destroys_) return;
    }
    destroy_in_parallel(std::move(links));
  }
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
  if (const auto refused = refused_.find(binary_id); refused != refused_.end()) return refused->second;
  const auto found = binaries_.find(binary_id);
  return found == binaries_.end() ? std::nullopt : found->second.failure;
}

UprobeManager::Figures UprobeManager::figures() const {
  const std::lock_guard lock(mutex_);
  Figures figures = figures_;
  figures.slow_to_detach = static_cast<std::size_t>(std::ranges::count_if(binaries_, [](const auto& entry) {
    return std::ranges::any_of(entry.second.links, &UprobeLink::slow_to_detach);
  }));
  return figures;
}

}  // namespace rtev::kernel
