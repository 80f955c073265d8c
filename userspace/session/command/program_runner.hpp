// SPDX-License-Identifier: MIT
// Runs a program of the caller's when something happens, although the tracer itself may not run programs.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// A process that runs the program again and again, one run after the other, as the user who called sudo, with the
/// caller's environment. It says on stderr when a run fails, or takes longer than a minute and is killed.
class ProgramRunner {
 public:
  /// Forks: call it before there are threads and BPF programs. `program` is looked for in PATH; no shell is involved.
  static Result<ProgramRunner> start(const std::string& program);
  ProgramRunner(ProgramRunner&& other) noexcept
      : channel_(std::move(other.channel_)), pid_(std::exchange(other.pid_, -1)) {}
  ProgramRunner& operator=(ProgramRunner&&) = delete;
  /// Waits until the runs that were asked for have ended.
  ~ProgramRunner();

  /// Asks for a run with one argument and these variables, "NAME=VALUE". They must not have NUL bytes. Does not wait;
  /// false if too many runs wait already.
  bool run(const std::string& argument, const std::vector<std::string>& variables) const;

 private:
  ProgramRunner(UniqueFd channel, pid_t pid) : channel_(std::move(channel)), pid_(pid) {}

  UniqueFd channel_;
  pid_t pid_;
};

}  // namespace rtev
