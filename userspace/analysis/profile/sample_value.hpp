// SPDX-License-Identifier: MIT
// What samples add up to.
#pragma once

#include <cstdint>

namespace rtev {

struct SampleValue {
  std::uint64_t samples = 0;
  std::uint64_t weight = 0;  ///< in the unit of the report: ns, bytes or samples

  SampleValue& operator+=(const SampleValue& other) {
    samples += other.samples;
    // Weights are what a recording says.
    if (__builtin_add_overflow(weight, other.weight, &weight)) weight = UINT64_MAX;
    return *this;
  }
  bool operator==(const SampleValue&) const = default;
};

}  // namespace rtev
