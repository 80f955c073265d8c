// SPDX-License-Identifier: MIT
// What tests of how processes and tracers live and die share.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "live/tracer.hpp"

namespace rtev::test {

/// The stream of each process by itself.
std::map<pid_t, Trace> by_process(const Trace& trace);

/// Stops a program with SIGSTOP; it has stopped when this returns.
void stop(Process& process);

/// The program writes no core file, whatever ends it.
Command without_core(Command command);

/// Numbers of the events "step" of module Counting, in the order of the stream; of one image where its name is given.
std::vector<std::int64_t> steps(const Trace& trace, pid_t pid, const std::string& comm = {});
/// 1, 2, … count.
std::vector<std::int64_t> count_to(std::int64_t count);

/// eBPF objects by what they are ("prog", "map", "link", "btf") and their ids.
using BpfObjects = std::set<std::pair<std::string, std::uint32_t>>;
/// Those that a process holds.
BpfObjects bpf_objects_of(pid_t pid);
/// Waits until none of them is left; hands out those that are left all the same.
BpfObjects outliving(BpfObjects objects);

}  // namespace rtev::test
