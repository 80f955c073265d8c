// SPDX-License-Identifier: MIT
// The part of ThreadTracker that knows which cpu a thread is on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/recent_entries.hpp"

namespace rtev {

/// The cpus of the threads that are on one, by tid. A thread that leaves keeps its entry, because most come back soon:
/// making an entry takes much longer than finding one. Memory is bounded by the number of cpus. One thread.
class CpusOfThreads {
 public:
  /// Nothing if it is on none.
  std::optional<std::uint32_t> find(std::int32_t tid) const {
    const auto found = cpus_.find(tid);
    return found == cpus_.end() ? std::nullopt : found->second;
  }
  /// The same; faster for a tid that was found lately.
  std::optional<std::uint32_t> find(std::int32_t tid) {
    const auto* const known = recent_.find(cpus_, tid);
    return known == nullptr ? std::nullopt : *known;
  }
  /// False if it is on a cpu already.
  bool enter(std::int32_t tid, std::uint32_t cpu) {
    auto* known = recent_.find(cpus_, tid);
    if (known == nullptr) {
      if (cpus_.size() >= kept_entries + 2 * on_cpu_) remove_unused();
      known = &cpus_[tid];
    }
    if (*known) return false;
    *known = cpu;
    ++on_cpu_;
    return true;
  }
  void leave(std::int32_t tid) {
    auto* const known = recent_.find(cpus_, tid);
    if (known == nullptr || !*known) return;
    known->reset();
    --on_cpu_;
  }

  /// Entries, also of threads that are on no cpu.
  std::size_t size() const { return cpus_.size(); }

 private:
  static constexpr std::size_t kept_entries = 4096;

  void remove_unused() {
    recent_.clear();
    std::erase_if(cpus_, [](const auto& entry) { return !entry.second; });
  }

  std::unordered_map<std::int32_t, std::optional<std::uint32_t>> cpus_;
  RecentEntries<std::optional<std::uint32_t>> recent_;
  std::size_t on_cpu_ = 0;  ///< entries with a cpu
};

}  // namespace rtev
