// SPDX-License-Identifier: MIT
// Which thread runs which domain: rings belong to domains, the scheduler knows threads.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "stream/records.hpp"

namespace rtev {

/// A fold over the switches of the stream. A domain's threads take turns: mutators (the domain's own thread and
/// systhreads), which hold its lock when they write to its ring, and the backup thread, which serves stop-the-world
/// requests while no mutator can. Memory is bounded. One thread.
class DomainThreads {
 public:
  void add(std::uint64_t time_ns, const SchedSwitch& change);
  /// Switches up to this time may be missing: who is on a cpu is not known any more.
  void lose(std::uint64_t to_ns);
  /// A process that ended, or goes on with another program.
  void forget(std::int32_t pid);

  /// The thread that writes this domain's ring now, as far as that is known: of the domain's threads the one on a cpu,
  /// a mutator rather than the backup thread; where none is, the last one. For a domain that no thread was seen with it
  /// is the only thread on a cpu whose domain is not known yet. Failing that domain 0 runs on the main thread, as it
  /// does in every program that OCaml starts. Nothing where switches are missing and it may be another one by now.
  std::optional<std::int32_t> tid_of(std::int32_t pid, std::uint16_t domain) const;

  /// Changes whenever an answer of tid_of() may have changed.
  std::uint64_t version() const { return version_; }

 private:
  struct Seat {
    std::int32_t pid;
    std::int32_t domain;  ///< -1: not known yet
    ThreadRole role;
    bool on_cpu;
    bool holds_lock = false;  ///< as it left its cpu: nobody else can run the domain
    bool certain = true;      ///< false: it may have come to a cpu or left it unseen
  };
  struct Domain {
    std::vector<std::int32_t> tids;  ///< that were seen with it, the one that came to a cpu last in the end
    std::int32_t last = 0;           ///< whom tid_of() named when one was on a cpu
  };
  struct Process {
    std::unordered_map<std::int32_t, Domain> domains;
    std::vector<std::int32_t> undetermined;  ///< threads on a cpu whose domain is not known
    std::vector<std::int32_t> tids;
  };

  Seat* seat_of(const Thread& thread);
  void learn(std::int32_t tid, Seat& seat, const Thread& thread);
  void enter(std::int32_t tid, Seat& seat);
  void leave(std::int32_t tid, Seat& seat);
  void become(Seat& seat, bool holds_lock, bool certain);
  void settle(Domain& domain);
  bool may_be_another(const Domain& domain, const Seat& last) const;
  void remove(std::int32_t tid);

  std::unordered_map<std::int32_t, Seat> seats_;          ///< by tid
  std::unordered_map<std::int32_t, Process> processes_;   ///< by pid
  std::unordered_map<std::uint32_t, std::int32_t> cpus_;  ///< who is on it, of the threads in seats_
  std::uint64_t lost_until_ns_ = 0;
  std::uint64_t version_ = 1;
};

}  // namespace rtev
