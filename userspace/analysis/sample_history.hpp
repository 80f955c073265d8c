// SPDX-License-Identifier: MIT
// The stacks that threads had lately, for questions about a time that turns out to matter only when it is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "rtev/event.hpp"
#include "stream/records.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// A stack that a thread had in a time, and how often it was seen.
struct SeenStack {
  StackIndex stack = 0;
  SampleKind kind{};
  std::uint64_t samples = 0;
  std::uint64_t of_samples = 0;  ///< of the thread in that time, of this kind
  std::uint64_t ns = 0;          ///< that `samples` stand for

  bool operator==(const SeenStack&) const = default;
};

/// Memory is bounded: what is too long ago is forgotten. One thread.
class SampleHistory {
 public:
  static constexpr std::size_t samples_per_thread = 1024, max_samples = std::size_t{1} << 17, max_threads = 8192;
  /// Of one answer and kind; others have less time.
  static constexpr std::size_t max_stacks = 8;

  /// Uses samples of on-CPU and off-CPU time, and ends of threads and processes; ignores all other events. Call it
  /// after what asks between() at these ends.
  void add(const Event& event, const Batch& batch, const Registry& registry);

  /// The stacks of a thread between two times; the one with most time first.
  std::vector<SeenStack> between(std::int32_t tid, std::uint64_t from_ns, std::uint64_t to_ns) const;

 private:
  struct Past {
    std::uint64_t time_ns = 0;
    std::uint64_t ns = 0;
    StackIndex stack = 0;
    SampleKind kind{};
  };
  struct Recent {
    std::int32_t pid = 0;
    std::deque<Past> samples{};  ///< oldest first
  };

  void sample(const Event& event, const Sample& sample);
  void forget_thread(std::int32_t tid);
  void forget_process(std::int32_t pid);

  std::unordered_map<std::int32_t, Recent> recent_;  ///< by tid
  std::size_t samples_ = 0;                          ///< of all threads
};

}  // namespace rtev
