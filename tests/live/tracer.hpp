// SPDX-License-Identifier: MIT
// Runs rtev-bpf, stops it, and parses and checks its output.
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

/// Output of one run of `rtev-bpf -f jsonl`. parse() checks each line against the schema, and the invariants of every
/// run: order, counts, one header, one summary.
struct Trace {
  Json header;
  std::vector<Json> events;
  Json summary;

  static Trace parse(std::string_view lines);

  /// Events of a type; of one process if `pid` is given.
  std::vector<Json> of(std::string_view type) const;
  std::vector<Json> of(pid_t pid, std::string_view type) const;
  /// Events from the rings of a process, in stream order.
  std::vector<Json> from_rings(pid_t pid) const;
  /// The process events of a process, in order: "found", "ring", "exit".
  std::vector<std::string> actions(pid_t pid) const;
  /// The only process event with that action. Otherwise fails the test and returns an empty object.
  Json action(pid_t pid, std::string_view action) const;
  /// Figures of a process in the summary, summed over its images.
  std::map<std::string, std::uint64_t> words(pid_t pid) const;
};

/// A running rtev-bpf.
class Tracer {
 public:
  struct Options {
    std::vector<std::string> format{"-f", "jsonl"};
    std::map<std::string, std::string> env{};
    bool terminal = false;
    std::vector<std::string> wrapper{};  ///< a command that execs the command after it
  };
  /// Returns when all probes are attached and the first scan is done: everything after that must be seen.
  explicit Tracer(std::vector<std::string> arguments, const Options& options);
  explicit Tracer(std::vector<std::string> arguments = {}) : Tracer(std::move(arguments), Options{}) {}

  Process& process() { return *process_; }

  /// Sends SIGINT and returns the parsed output. The exit status must be 0.
  Trace stop() { return Trace::parse(interrupt().out); }
  /// The same for a run in another format.
  Outcome interrupt();

 private:
  std::optional<Process> process_;
};

/// Runs rtev-bpf to its end.
Outcome run_tool(std::vector<std::string> arguments, Command command = {});

}  // namespace rtev::test
