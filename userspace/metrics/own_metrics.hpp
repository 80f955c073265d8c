// SPDX-License-Identifier: MIT
// What the tracer itself takes, by the names that all processes have in Prometheus.
#pragma once

#include "metrics/metric_visitor.hpp"
#include "stream/sink.hpp"

namespace rtev {

/// Of the calling process, with its threads and without its helpers.
void add_own_metrics(MetricVisitor& visitor, const RunHeader& run);

}  // namespace rtev
