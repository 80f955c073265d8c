// SPDX-License-Identifier: MIT
#include "kernel/uprobe_manager.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
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

/// Refused binaries that are remembered.
constexpr std::size_t max_refused = 4096;

}  // namespace

UprobeManager::~UprobeManager() {
  for (auto& [id, binary] : binaries_) take_links(id, binary);
  give_links();
  std::vector<FileLinks> files;
  files.reserve(to_give_.size());
  for (Given& given : to_give_) files.push_back(std::move(given.links));
  close_links_now(std::move(files));
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
  give_links();
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
  {
    const std::lock_guard lock(mutex_);
    const auto found = binaries_.find(binary_id);
    if (found == binaries_.end()) return true;
    Binary& binary = found->second;
    if (!binary.requested || binary.failure || binary.attaching || !binary.links.empty()) return true;
    // Functions that are probed twice would report everything twice.
    binary.postponed = is_detaching(binary_id);
    if (binary.postponed) return false;
    if (make_room(binary.of)) {
      binary.attaching = true;
      file = binary.file;
      plan = binary.plan;
      round = binary.round + 1;
    } else {
      forget(found, monotonic_ns());
    }
  }
  give_links();
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
  binary.postponed = attached ? mapped == RTEV_MAPPINGS_LOCKED : attached.error().code == EINPROGRESS;
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
  give_links();
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
  give_links();
  for (const std::uint32_t binary_id : postponed) attach(binary_id);
}

/// Under the lock, as are the following. The links are to be given away without the lock.
void UprobeManager::take_links(std::uint32_t binary_id, Binary& binary) {
  if (binary.links.empty()) return;
  Given& given = to_give_.emplace_back(Given{.binary = binary_id, .links = {.file = binary.file}});
  for (UprobeLink& link : std::exchange(binary.links, {})) given.links.links.push_back(std::move(link.fd));
  std::array<int, 2> ends{};
  // Without descriptors left they count as closed.
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  given.links.closed = UniqueFd(ends[1]);
  detached_.push_back(
      {.binary = binary_id, .user = binary.of.user, .links = given.links.links.size(), .closing = UniqueFd(ends[0])});
}

bool UprobeManager::is_detaching(std::uint32_t binary_id) {
  forget_closed();
  return std::ranges::find(detached_, binary_id, &Detached::binary) != detached_.end();
}

void UprobeManager::forget_closed() {
  std::erase_if(detached_, [](const Detached& detached) {
    pollfd closing{.fd = detached.closing.get(), .events = 0, .revents = 0};
    return ::poll(&closing, 1, 0) != 0;
  });
}

void UprobeManager::fail(Binary& binary, Error error) {
  ++figures_.failed;
  binary.file.reset();  // not needed again
  binary.failure = error.why;
  figures_.last_error = std::move(error);
}

/// To give its links away is up to the caller.
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
    if (!detached.late || (user && detached.user != *user)) continue;
    ++sum.binaries;
    sum.descriptors += 1 + detached.links;
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
  forget_closed();
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

/// Gives away the links that were taken, to be closed.
void UprobeManager::give_links() {
  std::vector<Given> taken;
  {
    const std::lock_guard lock(mutex_);
    taken = std::exchange(to_give_, {});
  }
  if (taken.empty()) return;
  std::set<std::uint32_t> late;
  std::vector<FileLinks> files;
  for (auto& [binary, links] : taken) {
    if (mappings(links.file.get()) != RTEV_MAPPINGS_FREE) late.insert(binary);
    files.push_back(std::move(links));
  }
  if (give_)
    files = give_(std::move(files));
  else
    close_links_now(std::exchange(files, {}));
  const std::lock_guard lock(mutex_);
  for (Detached& detached : detached_) detached.late |= late.contains(detached.binary);
  for (FileLinks& file : files) to_give_.push_back({.binary = 0, .links = std::move(file)});
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
        Error{.what = "cannot probe", .why = "a process keeps its memory map locked, or takes long to fork"};
  }
  figures.slow_to_detach = static_cast<std::size_t>(std::ranges::count_if(binaries_, [](const auto& entry) {
    return std::ranges::any_of(entry.second.links, &UprobeLink::slow_to_detach);
  }));
  return figures;
}

}  // namespace rtev::kernel
