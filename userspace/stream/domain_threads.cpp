// SPDX-License-Identifier: MIT
#include "stream/domain_threads.hpp"

#include <algorithm>
#include <ranges>

namespace rtev {

void DomainThreads::learn(DomainThread& known, const Thread& thread) {
  if (thread.role != ThreadRole::unknown) known.role = thread.role;
  if (thread.domain < 0 || thread.domain == known.domain || known.role == ThreadRole::tick) return;
  if (known.of_domain != nullptr) {
    std::erase(known.of_domain->threads, &known);
    choose_writer(*known.of_domain);
  }
  Process& process = processes_[known.pid];
  std::erase(process.undetermined, &known);
  known.domain = thread.domain;
  known.of_domain = &process.domains[known.domain];
  known.of_domain->threads.push_back(&known);
  choose_writer(*known.of_domain);
}

void DomainThreads::enter_cpu(DomainThread& thread) {
  if (thread.is_competing || thread.role == ThreadRole::tick) return;
  thread.is_competing = true;
  if (thread.of_domain == nullptr) {
    processes_[thread.pid].undetermined.push_back(&thread);
    ++version_;
    return;
  }
  auto& threads = thread.of_domain->threads;
  if (threads.back() != &thread) {
    std::erase(threads, &thread);
    threads.push_back(&thread);
  }
  choose_writer(*thread.of_domain);
}

void DomainThreads::leave_cpu(DomainThread& thread) {
  if (!thread.is_competing && !thread.holds_lock) return;
  thread.is_competing = false;
  if (thread.of_domain == nullptr) {
    std::erase(processes_[thread.pid].undetermined, &thread);
    ++version_;
  } else {
    choose_writer(*thread.of_domain);
  }
}

void DomainThreads::set_certainty(DomainThread& thread, bool holds_lock, bool certain) {
  // may_be_another() asks for them after losses only.
  if (was_lost_ && (thread.holds_lock != holds_lock || thread.certain != certain)) ++version_;
  thread.holds_lock = holds_lock;
  thread.certain = certain;
}

void DomainThreads::lose() {
  was_lost_ = true;
  for (Process& process : processes_ | std::views::values) process.undetermined.clear();
  ++version_;
}

void DomainThreads::lose(DomainThread& thread) {
  thread.is_competing = false;
  thread.holds_lock = false;
  thread.certain = false;
}

/// Decides again who writes a domain's ring.
void DomainThreads::choose_writer(ThreadsOfDomain& domain) {
  const DomainThread* chosen = nullptr;
  for (const DomainThread* const thread : domain.threads) {  // later ones win
    // Others on a cpu can only wait for the lock, or do without it.
    if (chosen != nullptr && chosen->holds_lock && !thread->holds_lock) continue;
    const bool chosen_is_mutator = chosen != nullptr && chosen->role != ThreadRole::backup;
    const bool competes = thread->is_competing && (thread->role != ThreadRole::backup || !chosen_is_mutator);
    if (thread->holds_lock || competes) chosen = thread;
  }
  const bool last_is_gone = std::ranges::find(domain.threads, domain.last) == domain.threads.end();
  if (chosen == nullptr && last_is_gone && !domain.threads.empty()) chosen = domain.threads.back();
  if (chosen == nullptr && !last_is_gone) return;
  if (chosen != domain.last) ++version_;
  domain.last = chosen;
}

void DomainThreads::remove(DomainThread& thread) {
  ++version_;
  const auto process = processes_.find(thread.pid);
  if (process != processes_.end()) {
    auto& [domains, undetermined] = process->second;
    std::erase(undetermined, &thread);
    if (const auto domain = domains.find(thread.domain); domain != domains.end()) {
      std::erase(domain->second.threads, &thread);
      choose_writer(domain->second);
      if (domain->second.threads.empty()) domains.erase(domain);
    }
    if (domains.empty() && undetermined.empty()) processes_.erase(process);
  }
  thread = {.pid = thread.pid, .tid = thread.tid};
}

std::optional<std::int32_t> DomainThreads::writer_of(std::int32_t pid, std::uint16_t domain) const {
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return domain == 0 ? std::optional{pid} : std::nullopt;
  const auto& [domains, undetermined] = process->second;
  const auto known = domains.find(domain);
  const DomainThread* const last = known != domains.end() ? known->second.last : nullptr;
  // A sleeping backup thread is not the writer while a thread runs that may be the domain's own.
  const bool is_unlikely = last == nullptr || (last->role == ThreadRole::backup && !last->is_competing);
  if (is_unlikely && undetermined.size() == 1) return undetermined.front()->tid;
  if (last != nullptr) return may_be_another(known->second) ? std::nullopt : std::optional{last->tid};
  if (domain != 0) return std::nullopt;
  const auto runs_main_thread = [&](const auto& other) {
    const auto& threads = other.second.threads;
    return other.first > 0 && std::ranges::find(threads, pid, &DomainThread::tid) != threads.end();
  };
  return std::ranges::any_of(domains, runs_main_thread) ? std::nullopt : std::optional{pid};
}

std::optional<std::int32_t> DomainThreads::mutator_of(std::int32_t pid, std::uint16_t domain) const {
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return writer_of(pid, domain);
  const auto known = process->second.domains.find(domain);
  if (known == process->second.domains.end()) return writer_of(pid, domain);
  const auto& [threads, last] = known->second;
  const auto is_mutator = [](const DomainThread* thread) { return thread->role != ThreadRole::backup; };
  if (last == nullptr || is_mutator(last)) return writer_of(pid, domain);
  const auto mutator = std::ranges::find_if(threads.rbegin(), threads.rend(), is_mutator);
  return mutator != threads.rend() ? std::optional{(*mutator)->tid} : std::nullopt;
}

/// Where switches are missing another mutator may have entered a cpu, or may wait for one since, unless the last
/// writer kept the domain's lock.
bool DomainThreads::may_be_another(const ThreadsOfDomain& domain) {
  const DomainThread& last = *domain.last;
  if (last.is_competing || last.holds_lock) return false;
  return std::ranges::any_of(domain.threads, [&](const DomainThread* thread) {
    return thread != &last && !thread->certain && thread->role != ThreadRole::backup;
  });
}

}  // namespace rtev
