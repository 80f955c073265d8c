// SPDX-License-Identifier: MIT
// Counts samples by what reports tell apart. Stacks may become known later, so they are not looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "analysis/profile/call_tree.hpp"
#include "analysis/profile/sample_value.hpp"
#include "stream/records.hpp"

namespace rtev {

struct SampleKey {
  StackIndex stack = 0;
  ProcessIndex process = 0;
  std::int32_t domain = -1;
  std::uint32_t label = 0;  ///< of the report: the phase or the span
  SampleSide side = SampleSide::others;
  bool in_gc = false;

  bool operator==(const SampleKey&) const = default;
};

class SampleFold {
 public:
  explicit SampleFold(std::size_t max_keys) : max_keys_(max_keys) {}

  /// If there is no room for the stack, the sample has an unknown one.
  void add(SampleKey key, const SampleValue& value) {
    if (values_.size() >= max_keys_ && !values_.contains(key)) {
      ++without_room_;
      key = {.stack = StackTable::unknown(), .process = 0, .side = key.side};
    }
    values_[key] += value;
  }
  std::uint64_t without_room() const { return without_room_; }
  const auto& values() const { return values_; }

 private:
  struct Hash {
    std::size_t operator()(const SampleKey& key) const {
      constexpr std::size_t factor = 0x9E3779B97F4A7C15;
      std::size_t hash = (std::size_t{key.stack} << 32 | key.process) * factor;
      hash ^= std::size_t{static_cast<std::uint32_t>(key.domain)} << 32 | key.label;
      hash = hash * factor ^ (static_cast<std::size_t>(key.side) << 1 | std::size_t{key.in_gc});
      return hash ^ hash >> 29;
    }
  };

  std::size_t max_keys_;
  std::unordered_map<SampleKey, SampleValue, Hash> values_;
  std::uint64_t without_room_ = 0;
};

}  // namespace rtev
