// SPDX-License-Identifier: MIT
// Which code lies where in traced processes.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "helper/process_queries.hpp"
#include "session/live/stacks/tables_cache.hpp"
#include "stream/registry.hpp"
#include "unwind/address_space.hpp"

namespace rtev {

/// Asks the helper process for the code of a process when it is needed: where its files are mapped, and, if there are
/// files among them whose tables are not known yet, again by a worker that builds these and may have to wait for a CPU
/// for long. What is known is used meanwhile. One thread.
class CodeSpaces {
 public:
  /// Called when a process's code is known, or known better.
  using OnKnown = std::function<void(ProcessIndex process)>;
  using Clock = std::function<std::uint64_t()>;
  CodeSpaces(ProcessQueries& readers, ProcessQueries& builders, OnKnown on_known, Clock clock);

  struct Process {
    ProcessIndex index;
    std::int32_t pid;
    std::uint32_t user;
  };
  /// Null while nothing is known. Asks for it, the first time.
  const AddressSpace* find(const Process& process);
  /// Something lies at an address of which nothing is known: it may have been mapped since. True if an answer is
  /// awaited, false if there is no point in asking again for a while.
  bool ask_again(const Process& process);
  bool is_awaited(ProcessIndex process) const;
  /// Of code that was mapped until then no answer can say more; 0: one is awaited, or none was asked for.
  std::uint64_t final_until_ns(ProcessIndex process) const;
  void forget(ProcessIndex process) { spaces_.erase(process); }
  /// See TablesCache::left_out().
  std::uint64_t left_out_tables() const { return tables_.left_out(); }

 private:
  struct Space {
    AddressSpace space{};
    std::uint64_t asked_ns = 0;
    unsigned answers = 0;  ///< to all that was asked
    bool has_mappings = false;
    bool is_awaited = false;
  };

  void ask(const Process& process, Space& space);
  enum class Asked : std::uint8_t { mappings, tables };
  void take(const Process& process, Asked asked, ProcessView view);

  ProcessQueries& readers_;
  ProcessQueries& builders_;
  OnKnown on_known_;
  Clock clock_;
  TablesCache tables_;
  TablesCache::Tables vdso_;
  std::unordered_map<ProcessIndex, Space> spaces_;
};

}  // namespace rtev
