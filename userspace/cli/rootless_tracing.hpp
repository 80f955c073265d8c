// SPDX-License-Identifier: MIT
// Tracing for those who may not use BPF: CMD, and their own processes.
#pragma once

#include "cli/options.hpp"
#include "cli/tracing.hpp"
#include "kernel/features.hpp"
#include "session/stop_signal.hpp"

namespace rtev::cli {

/// trace() where `host` denies BPF.
int trace_without_bpf(const TraceOptions& options, const Invocation& invocation, const Tracing& tracing,
                      const kernel::HostFeatures& host, StopSignal& stop);

}  // namespace rtev::cli
