// SPDX-License-Identifier: MIT
// Runs rtev-bpf for measurements: readiness, cpu time, summary.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "live/child_process.hpp"

namespace rtev::bench {

/// CPU time of the running threads of a process, ns; 0 if it has ended.
std::uint64_t cpu_ns(pid_t pid);
/// The same, with ended threads. Throws if the process has ended.
std::uint64_t total_cpu_ns(pid_t pid);
/// The same of a process and all its descendants that run.
std::uint64_t tree_cpu_ns(pid_t pid);

/// A running rtev-bpf.
class Tool {
 public:
  /// Returns when all probes are attached and the first scan is done. Bound to one cpu if one is given. Its
  /// stdout is a pipe or a terminal.
  explicit Tool(const std::vector<std::string>& arguments, std::optional<int> cpu = std::nullopt,
                bool terminal = false);

  test::Process& process() { return *process_; }
  std::uint64_t cpu_ns() const { return bench::cpu_ns(process_->pid()); }
  /// With its helper processes.
  std::uint64_t tree_cpu_ns() const { return bench::tree_cpu_ns(process_->pid()); }

  /// Sends SIGINT and returns the output. Throws unless the exit status is 0.
  test::Outcome interrupt();

 private:
  std::optional<test::Process> process_;
};

/// One of several ways to run the same program.
struct Setting {
  const char* name;
  std::optional<std::vector<std::string>> tool;  ///< arguments of rtev-bpf; nothing: untraced
};

/// Calls run(i) for 0 <= i < count, `rounds` times. Each round begins with another i.
template <typename Run>
void in_turns(int rounds, std::size_t count, Run run) {
  for (std::size_t round = 0; round < static_cast<std::size_t>(rounds); ++round)
    for (std::size_t turn = 0; turn < count; ++turn) run((round + turn) % count);
}

/// These arguments, and those that make rtev-bpf read and merge everything and format almost nothing: stdout has a few
/// lines about processes and the summary.
std::vector<std::string> to_nothing(std::vector<std::string> arguments = {"--sched", "off"});
/// The same arguments and -p PID.
std::vector<std::string> with_pid(std::vector<std::string> arguments, pid_t pid);

/// The last JSON line, which holds the summary; an empty object if it is not one.
nlohmann::json summary_of(const std::string& lines);

/// A process's entry in the summary of a run with JSON lines. Throws if there is none.
struct ToolFigures {
  std::uint64_t events;
  std::uint64_t lost_words;
  std::uint64_t written_words;
};
ToolFigures figures_of(const std::string& lines, pid_t pid);

}  // namespace rtev::bench
