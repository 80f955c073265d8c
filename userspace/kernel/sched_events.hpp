// SPDX-License-Identifier: MIT
// Converts scheduler records of the BPF programs to payloads of stream events.
#pragma once

#include "bpf/records.h"
#include "stream/records.hpp"

namespace rtev::kernel {

/// For records of type RTEV_SWITCH.
SchedSwitch to_switch(const rtev_sched& record);

/// For records of type RTEV_WAKEUP.
Wakeup to_wakeup(const rtev_sched& record);

/// Why a thread left its cpu, from the kernel's task state as in the sched_switch tracepoint.
LeftState left_state(std::uint32_t task_state, bool preempted);

}  // namespace rtev::kernel
