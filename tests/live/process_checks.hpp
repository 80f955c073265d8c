// SPDX-License-Identifier: MIT
// Helpers of the tests about the start and end of processes and tracers.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "live/tracer.hpp"

namespace rtev::test {

/// Splits the stream by process.
std::map<pid_t, Trace> by_process(const Trace& trace);

/// Stops a program with SIGSTOP; returns when it has stopped.
void stop(Process& process);

/// Disables core files for the program.
Command without_core(Command command);

/// Numbers of the events "step" of module Counting, in stream order; of one process image if `name` is given.
std::vector<std::int64_t> steps(const Trace& trace, pid_t pid, const std::string& comm = {});
/// 1, 2, … count.
std::vector<std::int64_t> count_to(std::int64_t count);

/// BPF objects: kind ("prog", "map", "link", "btf") and id.
using BpfObjects = std::set<std::pair<std::string, std::uint32_t>>;
/// BPF objects that a process holds.
BpfObjects bpf_objects_of(pid_t pid);
/// Waits until none of these objects exists; returns those that still exist at the timeout.
BpfObjects outliving(BpfObjects objects);

}  // namespace rtev::test
