// SPDX-License-Identifier: MIT
// Who allocates most, of samples of allocations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/profile/profile_sink.hpp"

namespace rtev {

struct Allocator {
  std::string place{};                ///< "Web.Server.handle server.ml:42", without control characters
  std::uint64_t weight = 0, all = 0;  ///< its share of what minor heaps took
  std::int32_t pid = 0;               ///< of the process that has most of that; 0: unknown
};

/// Costs nothing while the stream has no such samples. One thread.
class Allocators {
 public:
  void header(const RunHeader& header) { header_ = header; }
  void consume(const Batch& batch, const Registry& registry);
  void summary(const RunSummary& summary, const Registry& registry) {
    if (profile_) profile_->summary(summary, registry);
  }

  static constexpr std::size_t max_allocators = 3;
  /// After summary(): the greatest first.
  std::vector<Allocator> greatest(const Registry& registry) const;

 private:
  RunHeader header_{};
  std::unique_ptr<Profile> profile_;
};

}  // namespace rtev
