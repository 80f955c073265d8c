// SPDX-License-Identifier: MIT
// A Histogram as members of a JSON object.
#pragma once

#include "analysis/latency/histogram.hpp"
#include "base/json_writer.hpp"

namespace rtev {

/// The members of a distribution. Without values there is only the count.
void add_distribution(JsonWriter& out, const Histogram& values);

}  // namespace rtev
