// SPDX-License-Identifier: MIT
// The part of ThreadTracker that knows which thread runs which domain: rings belong to domains, the scheduler knows
// threads.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "stream/records.hpp"

namespace rtev {

struct DomainThread;

/// The threads of a domain.
struct ThreadsOfDomain {
  std::vector<const DomainThread*> threads;  ///< the one that entered a cpu last at the end
  const DomainThread* last = nullptr;        ///< the writer when one was on a cpu last
};

/// What DomainThreads keeps of a thread. It lives in its owner's table, which removes it before it goes.
struct DomainThread {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::int32_t domain = -1;  ///< -1: unknown
  ThreadsOfDomain* of_domain = nullptr;
  ThreadRole role = ThreadRole::unknown;
  bool is_competing = false;  ///< on a cpu, and able to write to a ring
  bool holds_lock = false;    ///< when it left its cpu: no other thread can run the domain
  bool certain = true;        ///< false: it may have entered or left a cpu unseen
};

/// A domain's threads take turns: mutators (the domain's own thread and systhreads), which hold its lock when they
/// write to its ring, and the backup thread, which serves stop-the-world requests while no mutator can. Memory is
/// bounded by the number of threads. One thread.
class DomainThreads {
 public:
  /// Takes the role and the domain from a description of the thread.
  void learn(DomainThread& known, const Thread& thread);
  void enter_cpu(DomainThread& thread);
  void leave_cpu(DomainThread& thread);
  void set_certainty(DomainThread& thread, bool holds_lock, bool certain);
  /// To be called for every thread after a loss of switches; lose() first.
  void lose(DomainThread& thread);
  void lose();
  /// Forgets what is known of the thread, which ended or goes on with another program.
  void remove(DomainThread& thread);

  /// See ThreadTracker::writer_of().
  std::optional<std::int32_t> writer_of(std::int32_t pid, std::uint16_t domain) const;
  /// See ThreadTracker::mutator_of().
  std::optional<std::int32_t> mutator_of(std::int32_t pid, std::uint16_t domain) const;
  std::uint64_t version() const { return version_; }

 private:
  struct Process {
    std::unordered_map<std::int32_t, ThreadsOfDomain> domains;
    std::vector<const DomainThread*> undetermined;  ///< threads on a cpu whose domain is unknown
  };

  void choose_writer(ThreadsOfDomain& domain);
  static bool may_be_another(const ThreadsOfDomain& domain);

  std::unordered_map<std::int32_t, Process> processes_;  ///< by pid
  bool was_lost_ = false;
  std::uint64_t version_ = 1;
};

}  // namespace rtev
