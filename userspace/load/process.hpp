// SPDX-License-Identifier: MIT
// One process of a load: its ring file, its domains, and the messages to its parent.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "load/load_options.hpp"
#include "load/plan.hpp"
#include "load/stop.hpp"

namespace rtev::load {

/// The task of a forked process.
struct ProcessTask {
  const LoadOptions& options;
  std::span<const Plan> plans;  ///< one for each domain; none for an idle load
  std::string directory;
  bool is_temporary;  ///< the last process removes the directory if the parent was killed
  std::string name;
  pid_t parent;
  int report_fd;         ///< for messages: see Tag
  int gate_fd;           ///< a pipe whose end of file means to begin
  std::uint64_t end_ns;  ///< when the whole load ends; `never` if that is unknown
};

/// First byte of a message to the parent. A process sends `ready`, and at its end one of the others.
enum class Tag : char {
  ready = 'r',   ///< its rings exist
  report = 'w',  ///< followed by encode(ProcessReport)
  error = 'e',   ///< followed by a message
};

/// Runs a forked process until its end. Does not run destructors or flush buffers of the parent.
[[noreturn]] void run_process(const ProcessTask& task);

}  // namespace rtev::load
