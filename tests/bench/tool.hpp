// SPDX-License-Identifier: MIT
// rtev-bpf under measurement: started, ready, its cpu time, its figures.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "live/process.hpp"

namespace rtev::bench {

/// CPU time of all threads of a process, ns; 0 if it is gone.
std::uint64_t cpu_ns(pid_t pid);

/// A running rtev-bpf.
class Tool {
 public:
  /// Returns once everything is attached and the first scan is done. On one cpu only if one is named.
  explicit Tool(const std::vector<std::string>& arguments, std::optional<int> cpu = std::nullopt);

  test::Process& process() { return *process_; }
  std::uint64_t cpu_ns() const { return bench::cpu_ns(process_->pid()); }

  /// Ctrl-C, and what it wrote. Throws unless it ends well.
  test::Outcome interrupt();

 private:
  std::optional<test::Process> process_;
};

/// Arguments that make rtev-bpf read and merge everything and format next to nothing: what is left on stdout are a few
/// lines about processes and, in the last one, the figures.
std::vector<std::string> to_nothing();

/// The last of JSON lines, which holds the figures of the run; an empty object if it is none.
nlohmann::json summary_of(const std::string& lines);

/// What a run of the tool to JSON lines says of a process in its last line. Throws if it does not know it.
struct ToolFigures {
  std::uint64_t events;
  std::uint64_t lost_words;
  std::uint64_t written_words;
};
ToolFigures figures_of(const std::string& lines, pid_t pid);

}  // namespace rtev::bench
