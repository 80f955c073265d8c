// SPDX-License-Identifier: MIT
// Tells the samples inside of slow spans from the others. How long a span takes is known at its end: until then its
// samples wait here.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>

#include "analysis/profile/sample_fold.hpp"

namespace rtev {

/// What a span covers: a domain, a fiber of it, or all threads of a process.
struct SlowScope {
  ProcessIndex process = 0;
  std::int32_t domain = -1;             ///< -1: all threads
  std::optional<std::int64_t> fiber{};  ///< of the domain; none: all fibers

  auto operator<=>(const SlowScope&) const = default;
};

/// Memory is bounded. One thread.
class SlowSamples {
 public:
  SlowSamples(SampleFold& fold, std::uint64_t min_ns, std::size_t max_waiting)
      : fold_(fold), min_ns_(min_ns), max_waiting_(max_waiting) {}

  /// `begins`: when the open spans around the sample began.
  void add(const SlowScope& scope, const SampleKey& key, const SampleValue& value, std::uint64_t time_ns,
           std::span<const std::uint64_t> begins);
  bool waits(const SlowScope& scope) const { return waiting_.contains(scope); }
  /// A span ended, and these are still open. `is_known`: else its length is at least so much.
  void end(const SlowScope& scope, std::uint64_t begin_ns, std::uint64_t end_ns, bool is_known,
           std::span<const std::uint64_t> begins);

  /// Samples of spans of unknown length, which are in no figure.
  std::uint64_t undecided() const { return undecided_; }

 private:
  struct Waiting {
    SampleKey key;
    SampleValue value;
    std::uint64_t time_ns;
    bool inside = false;
    bool unknown = false;  ///< a span around it had no end
  };
  using Queue = std::deque<Waiting>;

  void mark(Queue& queue, std::uint64_t begin_ns, std::uint64_t end_ns, bool Waiting::* as);
  void settle(Queue& queue, std::span<const std::uint64_t> begins);
  void decide(const Waiting& sample);

  SampleFold& fold_;
  std::uint64_t min_ns_;
  std::size_t max_waiting_, waiting_count_ = 0;
  std::map<SlowScope, Queue> waiting_;
  std::uint64_t undecided_ = 0;
};

}  // namespace rtev
