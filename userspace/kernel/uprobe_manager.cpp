// SPDX-License-Identifier: MIT
#include "kernel/uprobe_manager.hpp"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/background_close.hpp"
#include "base/clock.hpp"

namespace rtev::kernel {
namespace {

constexpr std::uint64_t unused_timeout_ns = 60'000'000'000;

/// The kernel's grace period is the same for one link and for many, so many are forgotten at a time.
constexpr UprobeManager::Bound after_making_room(const UprobeManager::Bound& bound) {
  return {.binaries = bound.binaries / 4 * 3, .descriptors = bound.descriptors / 4 * 3};
}

/// Links that wait to be destroyed, except for those that are kept: each is a descriptor.
constexpr std::size_t max_unused = 64;

/// Refused binaries that are remembered.
constexpr std::size_t max_refused = 4096;

}  // namespace

UprobeManager::~UprobeManager() {
  destroyer_ = {};
  for (auto& [id, binary] : binaries_) take_links(id, binary);
  std::vector<FileLinks> files;
  for (Detached& detached : detached_) {
    FileLinks& links = files.emplace_back(FileLinks{.file = std::move(detached.file)});
    for (UprobeLink& link : detached.links) links.links.push_back(std::move(link.fd));
  }
  if (files.empty()) return;
  if (leave_) {
    leave_(std::move(files));
  } else {
    constexpr int no_check = -1;
    close_links_in_background(no_check, std::move(files));
  }
}

bool UprobeManager::add(int file, ProbedBinary added, ProbePlan plan) {
  if (plan.sites.empty() && plan.why_not.empty()) return true;
  const std::uint32_t id = added.id;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = binaries_.find(id); known != binaries_.end()) {
      known->second.last_use = ++last_use_;
    } else if (make_room(added)) {
      Binary& binary = binaries_[id];
      binary.of = std::move(added);
      binary.last_use = ++last_use_;
      if (!plan.sites.empty())
        binary.file = std::make_shared<UniqueFd>(::fcntl(file, F_DUPFD_CLOEXEC, 0), close_in_background);
      binary.plan = std::move(plan);
      binary.requested = requested_.erase(id) > 0 || policy_ == AttachPolicy::at_once;
    }
  }
  destroy_later();
  return attach(id);
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

bool UprobeManager::attach(std::uint32_t binary_id) {
  std::shared_ptr<UniqueFd> file;
  ProbePlan plan;
  std::uint32_t round = 0;
  bool is_detaching_it = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = binaries_.find(binary_id);
    if (found == binaries_.end()) return true;
    Binary& binary = found->second;
    if (!binary.requested || binary.failure || binary.attaching || !binary.links.empty()) return true;
    is_detaching_it = is_detaching(binary_id);
    if (is_detaching_it) {
      binary.postponed = true;
    } else if (make_room(binary.of)) {
      binary.attaching = true;
      file = binary.file;
      plan = binary.plan;
      round = binary.round + 1;
    } else {
      forget(found, monotonic_ns());
    }
  }
  if (is_detaching_it) {
    // Functions that are probed twice would report everything twice.
    destroy(Which::all);
    return false;
  }
  destroy_later();
  if (round == 0) return true;
  // Not under the lock: the kernel visits every process that maps the file. An entry is not erased while attaching.
  const rtev_mappings mapped = mappings(file.get());
  Result<AttachedUprobes> attached;
  if (plan.sites.empty())
    attached = std::unexpected(Error{.what = "cannot probe", .why = plan.why_not});
  else if (mapped == RTEV_MAPPINGS_MANY)
    attached = std::unexpected(Error{.what = "cannot probe", .why = "its file is mapped too often"});
  else if (mapped == RTEV_MAPPINGS_FREE)
    attached = programs_.probe(file->get(), binary_id, plan, round);
  const std::uint64_t now = monotonic_ns();
  const std::lock_guard lock(mutex_);
  Binary& binary = binaries_.at(binary_id);
  binary.attaching = false;
  binary.postponed = attached && mapped == RTEV_MAPPINGS_LOCKED;
  if (binary.postponed) return false;
  binary.round = round;
  if (!attached) {
    fail(binary, std::move(attached.error()));
    return true;
  }
  figures_.skipped += attached->skipped;
  binary.links = std::move(attached->links);
  binary.attached_since_ns = now;
  note_change({.binary = binary_id, .attached = true, .time_ns = now});
  return true;
}

void UprobeManager::detach(std::uint32_t binary_id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = binaries_.find(binary_id);
    if (found == binaries_.end()) return;
    Binary& binary = found->second;
    if (binary.links.empty() && !binary.postponed) return;
    binary.requested = binary.postponed = false;
    if (binary.links.empty()) return;
    note_change({.binary = binary_id, .attached = false, .time_ns = monotonic_ns()});
    take_links(binary_id, binary);
  }
  destroy(Which::fresh);
}

void UprobeManager::detach_unused(const std::set<std::uint32_t>& in_use, std::uint64_t now_ns) {
  std::vector<std::uint32_t> postponed;
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
      if (!expired && binary.postponed) postponed.push_back(entry->first);
      entry = expired ? forget(entry, now_ns) : std::next(entry);
    }
    std::erase_if(refused_, [&](const auto& refused) { return !in_use.contains(refused.first); });
  }
  destroy(Which::all);
  for (const std::uint32_t binary_id : postponed) attach(binary_id);
}

/// Under the lock, as are the following. The links are to be destroyed without the lock.
void UprobeManager::take_links(std::uint32_t binary_id, Binary& binary) {
  if (binary.links.empty()) return;
  detached_.push_back(
      {.binary = binary_id, .user = binary.of.user, .file = binary.file, .links = std::exchange(binary.links, {})});
}

bool UprobeManager::is_detaching(std::uint32_t binary_id) const {
  return std::ranges::find(detached_, binary_id, &Detached::binary) != detached_.end();
}

void UprobeManager::fail(Binary& binary, Error error) {
  ++figures_.failed;
  binary.file.reset();  // not needed again
  binary.failure = error.why;
  figures_.last_error = std::move(error);
}

/// To destroy its links is up to the caller.
UprobeManager::Entries::iterator UprobeManager::forget(Entries::iterator entry, std::uint64_t now_ns) {
  auto& [id, binary] = *entry;
  if (!binary.links.empty()) note_change({.binary = id, .attached = false, .time_ns = now_ns});
  take_links(id, binary);
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
  for (const Detached& detached : detached_) {
    if (!detached.kept || (user && detached.user != *user)) continue;
    ++sum.binaries;
    sum.descriptors += 1 + detached.links.size();
  }
  return sum.binaries >= bound.binaries || sum.descriptors >= bound.descriptors;
}

/// Forgets binaries that are not in use, until there is ample room. Of all users, of the one with the most first.
void UprobeManager::forget_unused(std::optional<std::uint32_t> user, const Bound& bound, std::uint32_t except) {
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
    forget(entry, now_ns);
  }
}

/// Makes room for a binary. False, and it is counted, if too many are in use.
bool UprobeManager::make_room(const ProbedBinary& binary) {
  forget_unused(binary.user, user_bound, binary.id);
  forget_unused(std::nullopt, total_bound, binary.id);
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

/// Without the lock, as are the following.
rtev_mappings UprobeManager::mappings(const UniqueFd* file) const {
  return check_ && file != nullptr ? check_(file->get()) : RTEV_MAPPINGS_FREE;
}

/// Destroys links that wait for it, where the mappings of their file allow it.
void UprobeManager::destroy(Which which) {
  std::vector<std::list<Detached>::iterator> taken;
  {
    const std::lock_guard lock(mutex_);
    for (auto detached = detached_.begin(); detached != detached_.end(); ++detached) {
      if (detached->busy || (detached->kept && which == Which::fresh)) continue;
      detached->busy = true;
      taken.push_back(detached);
    }
    if (taken.empty()) return;
  }
  const auto kept = std::ranges::partition(
      taken, [this](const auto& detached) { return mappings(detached->file.get()) == RTEV_MAPPINGS_FREE; });
  std::vector<UprobeLink> links;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& detached : kept) {
      detached->kept = true;
      detached->busy = false;
    }
    taken.erase(kept.begin(), kept.end());
    for (const auto& detached : taken) std::ranges::move(std::exchange(detached->links, {}), std::back_inserter(links));
  }
  destroy_in_parallel(std::move(links));
  const std::lock_guard lock(mutex_);
  for (const auto& detached : taken) detached_.erase(detached);
}

/// The caller goes on to attach: programs wait for that, and it does not need the grace period to be over. Waits only
/// if too many links wait for theirs.
void UprobeManager::destroy_later() {
  {
    const std::lock_guard lock(mutex_);
    std::size_t waiting = 0;
    for (const Detached& detached : detached_) waiting += detached.kept || detached.busy ? 0 : detached.links.size();
    if (waiting == 0) return;
    if (std::exchange(destroys_, true) && waiting < max_unused) return;
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
  const auto is_done = [this] {
    const std::lock_guard lock(mutex_);
    const auto waits = [](const Detached& detached) { return !detached.kept && !detached.busy; };
    destroys_ = std::ranges::any_of(detached_, waits);
    return !destroys_;
  };
  do {
    destroy(Which::fresh);
  } while (!is_done());
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
  const auto postponed = std::ranges::count_if(binaries_, [](const auto& entry) { return entry.second.postponed; });
  if (postponed > 0) {
    figures.failed += static_cast<std::size_t>(postponed);
    figures.last_error =
        Error{.what = "cannot probe", .why = "a process that has mapped it keeps its memory map locked"};
  }
  figures.slow_to_detach = static_cast<std::size_t>(std::ranges::count_if(binaries_, [](const auto& entry) {
    return std::ranges::any_of(entry.second.links, &UprobeLink::slow_to_detach);
  }));
  return figures;
}

}  // namespace rtev::kernel
