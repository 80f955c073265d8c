// SPDX-License-Identifier: MIT
// rtev-bpf under test: started, waited for, stopped, and what it wrote taken apart and checked.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "live/process.hpp"

namespace rtev::test {

using Json = nlohmann::json;

/// The binary under test.
std::string tool();

/// What one run of `rtev-bpf -f jsonl` wrote. parse() checks each line against the schema and the promises that hold
/// for every run: order, accounting, one header, one summary.
struct Trace {
  Json header;
  std::vector<Json> events;
  Json summary;

  static Trace parse(std::string_view lines);

  /// Events of a type; of a process where one is named.
  std::vector<Json> of(std::string_view type) const;
  std::vector<Json> of(pid_t pid, std::string_view type) const;
  /// Events that came out of a process's rings, in the order of the stream.
  std::vector<Json> from_rings(pid_t pid) const;
  /// What happened to a process, in order: "found", "ring", "exit".
  std::vector<std::string> actions(pid_t pid) const;
  /// The one process event of that action; an empty object, and a failed test, if there is not exactly one.
  Json action(pid_t pid, std::string_view action) const;
  /// Figures of a process in the summary, all its images together.
  std::map<std::string, std::uint64_t> words(pid_t pid) const;
};

/// A running rtev-bpf.
class Tracer {
 public:
  struct Options {
    std::vector<std::string> format{"-f", "jsonl"};
    std::map<std::string, std::string> env{};
    bool terminal = false;
    std::vector<std::string> wrapper{};  ///< a command that becomes the one behind it
  };
  /// Returns once everything is attached and the first scan is done: what happens from now on must be seen.
  explicit Tracer(std::vector<std::string> arguments, const Options& options);
  explicit Tracer(std::vector<std::string> arguments = {}) : Tracer(std::move(arguments), Options{}) {}

  Process& process() { return *process_; }

  /// Ctrl-C, and what it wrote until then. The exit status must be 0.
  Trace stop() { return Trace::parse(interrupt().out); }
  /// The same for a run in another format.
  Outcome interrupt();

 private:
  std::optional<Process> process_;
};

/// Runs rtev-bpf to its end.
Outcome run_tool(std::vector<std::string> arguments, Command command = {});

}  // namespace rtev::test
