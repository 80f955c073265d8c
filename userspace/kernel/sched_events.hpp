// SPDX-License-Identifier: MIT
// Scheduler records of the BPF side to events of the timeline.
#pragma once

#include "bpf/records.h"
#include "stream/records.hpp"

namespace rtev::kernel {

/// For records of type RTEV_SWITCH.
SchedSwitch to_switch(const rtev_sched& record);

/// For records of type RTEV_WAKEUP.
Wakeup to_wakeup(const rtev_sched& record);

/// The kernel's task state, as sched_switch has it, in words.
LeftState left_state(std::uint32_t task_state, bool preempted);

}  // namespace rtev::kernel
