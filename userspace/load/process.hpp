// SPDX-License-Identifier: MIT
// One process of a load: its ring file, its domains, and what it tells its parent.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "load/options.hpp"
#include "load/plan.hpp"
#include "load/stop.hpp"

namespace rtev::load {

/// What a forked process gets from its parent.
struct ProcessTask {
  const Options& options;
  std::span<const Plan> plans;  ///< one for each domain; none if nothing is to be written
  std::string directory;
  bool is_private;  ///< the directory goes when the load ends, by whoever is left
  std::string name;
  pid_t parent;
  int report_fd;         ///< see Tag
  int gate_fd;           ///< its end is the signal to begin; -1: at once
  std::uint64_t end_ns;  ///< of the whole load, where that is known
};

/// First byte of what a process tells: one `ready`, then one of the others, with which it ends.
enum class Tag : char {
  ready = 'r',   ///< its rings are there
  report = 'w',  ///< encode(ProcessReport) follows
  error = 'e',   ///< a text follows
};

/// The life of a process, from the fork to its end. Nothing of the parent is cleaned up or flushed.
[[noreturn]] void run_process(const ProcessTask& task);

}  // namespace rtev::load
