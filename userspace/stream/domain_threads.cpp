// SPDX-License-Identifier: MIT
#include "stream/domain_threads.hpp"

#include <algorithm>

namespace rtev {
namespace {

/// Threads remembered at once; what is beyond is not told apart, which a host never reaches that rtev-bpf can track.
constexpr std::size_t most_threads = std::size_t{1} << 20;

}  // namespace

void DomainThreads::add(std::uint64_t time_ns, const SchedSwitch& change) {
  const bool certain = time_ns > lost_until_ns_;
  // Whoever was on this cpu has left it, also where that switch was lost.
  if (const auto previous = cpus_.find(change.cpu); previous != cpus_.end()) {
    if (previous->second != change.prev.tid) {
      if (const auto lost = seats_.find(previous->second); lost != seats_.end()) leave(lost->first, lost->second);
    }
    cpus_.erase(previous);
  }
  if (change.prev.tracked) {
    if (Seat* seat = seat_of(change.prev)) {
      learn(change.prev.tid, *seat, change.prev);
      leave(change.prev.tid, *seat);
      become(*seat, change.prev.holds_lock && certain, certain);
      if (change.state == LeftState::dead) remove(change.prev.tid);
    }
  }
  if (change.next.tracked) {
    if (Seat* seat = seat_of(change.next)) {
      learn(change.next.tid, *seat, change.next);
      become(*seat, false, certain);
      if (!certain) return;
      enter(change.next.tid, *seat);
      cpus_[change.cpu] = change.next.tid;
    }
  }
}

void DomainThreads::lose(std::uint64_t to_ns) {
  lost_until_ns_ = std::max(lost_until_ns_, to_ns);
  for (auto& [tid, seat] : seats_) {
    seat.on_cpu = false;
    seat.holds_lock = false;
    seat.certain = false;
  }
  for (auto& [pid, process] : processes_) process.undetermined.clear();
  cpus_.clear();
  ++version_;
}

void DomainThreads::become(Seat& seat, bool holds_lock, bool certain) {
  // Where nothing was ever lost who holds the lock decides nothing.
  if (lost_until_ns_ != 0 && (seat.holds_lock != holds_lock || seat.certain != certain)) ++version_;
  seat.holds_lock = holds_lock;
  seat.certain = certain;
}

std::optional<std::int32_t> DomainThreads::tid_of(std::int32_t pid, std::uint16_t domain) const {
  const auto process = processes_.find(pid);
  if (process != processes_.end()) {
    const auto known = process->second.domains.find(domain);
    const bool has_last = known != process->second.domains.end();
    const std::int32_t last = has_last ? known->second.last : 0;
    const auto found = has_last ? seats_.find(last) : seats_.end();
    const Seat* const seat = found != seats_.end() ? &found->second : nullptr;
    // A backup thread that sleeps is not who writes while a thread runs that may be the domain's own.
    const bool is_unlikely = seat == nullptr || (seat->role == ThreadRole::backup && !seat->on_cpu);
    if (is_unlikely && process->second.undetermined.size() == 1) return process->second.undetermined.front();
    if (seat != nullptr) return may_be_another(known->second, *seat) ? std::nullopt : std::optional{last};
  }
  if (domain != 0) return std::nullopt;
  const auto main_thread = seats_.find(pid);
  if (main_thread != seats_.end() && main_thread->second.domain > 0) return std::nullopt;
  return pid;
}

/// Where switches are missing another mutator may have come to a cpu, or may have waited for one since, unless the last
/// one kept the domain's lock.
bool DomainThreads::may_be_another(const Domain& domain, const Seat& last) const {
  if (last.on_cpu || last.holds_lock) return false;
  return std::ranges::any_of(domain.tids, [&](std::int32_t tid) {
    const Seat& seat = seats_.at(tid);
    return &seat != &last && !seat.certain && seat.role != ThreadRole::backup;
  });
}

/// The seat of a thread, made where it is new. A tid that comes back in another process is another thread.
DomainThreads::Seat* DomainThreads::seat_of(const Thread& thread) {
  if (thread.tid <= 0) return nullptr;  // a recording may say anything
  auto found = seats_.find(thread.tid);
  if (found != seats_.end() && found->second.pid != thread.pid) {
    remove(thread.tid);
    found = seats_.end();
  }
  if (found == seats_.end()) {
    if (seats_.size() >= most_threads) return nullptr;
    found = seats_.try_emplace(thread.tid, Seat{thread.pid, -1, ThreadRole::unknown, false}).first;
    processes_[thread.pid].tids.push_back(thread.tid);
  }
  return &found->second;
}

void DomainThreads::learn(std::int32_t tid, Seat& seat, const Thread& thread) {
  if (thread.role != ThreadRole::unknown) seat.role = thread.role;
  if (thread.domain < 0 || thread.domain == seat.domain || seat.role == ThreadRole::tick) return;
  Process& process = processes_[seat.pid];
  if (const auto former = process.domains.find(seat.domain); former != process.domains.end()) {
    std::erase(former->second.tids, tid);
    settle(former->second);
  }
  std::erase(process.undetermined, tid);
  seat.domain = thread.domain;
  Domain& domain = process.domains[seat.domain];
  domain.tids.push_back(tid);
  settle(domain);
}

void DomainThreads::enter(std::int32_t tid, Seat& seat) {
  if (seat.on_cpu || seat.role == ThreadRole::tick) return;
  seat.on_cpu = true;
  Process& process = processes_[seat.pid];
  if (seat.domain < 0) {
    process.undetermined.push_back(tid);
    ++version_;
    return;
  }
  Domain& domain = process.domains[seat.domain];
  std::erase(domain.tids, tid);
  domain.tids.push_back(tid);
  settle(domain);
}

void DomainThreads::leave(std::int32_t tid, Seat& seat) {
  if (!seat.on_cpu) return;
  seat.on_cpu = false;
  Process& process = processes_[seat.pid];
  if (seat.domain < 0) {
    std::erase(process.undetermined, tid);
    ++version_;
  } else {
    settle(process.domains[seat.domain]);
  }
}

/// Decides anew who writes a domain's ring.
void DomainThreads::settle(Domain& domain) {
  std::int32_t chosen = 0;
  for (const std::int32_t tid : domain.tids) {  // later ones win
    const Seat& seat = seats_.at(tid);
    const bool chosen_is_mutator = chosen != 0 && seats_.at(chosen).role != ThreadRole::backup;
    if (seat.on_cpu && (seat.role != ThreadRole::backup || !chosen_is_mutator)) chosen = tid;
  }
  const bool last_is_gone = std::ranges::find(domain.tids, domain.last) == domain.tids.end();
  if (chosen == 0 && last_is_gone && !domain.tids.empty()) chosen = domain.tids.back();
  if (chosen == 0 && !last_is_gone) return;
  if (chosen != domain.last) ++version_;
  domain.last = chosen;
}

void DomainThreads::remove(std::int32_t tid) {
  const auto found = seats_.find(tid);
  if (found == seats_.end()) return;
  const Seat seat = found->second;
  Process& process = processes_[seat.pid];
  std::erase(process.tids, tid);
  std::erase(process.undetermined, tid);
  if (const auto domain = process.domains.find(seat.domain); domain != process.domains.end()) {
    std::erase(domain->second.tids, tid);
    settle(domain->second);
    if (domain->second.tids.empty()) process.domains.erase(domain);
  }
  seats_.erase(found);
  if (process.tids.empty()) processes_.erase(seat.pid);
  ++version_;
}

void DomainThreads::forget(std::int32_t pid) {
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  for (const std::int32_t tid : process->second.tids) seats_.erase(tid);
  processes_.erase(process);
  ++version_;
}

}  // namespace rtev
