// SPDX-License-Identifier: MIT
// Runs rtev-bpf, stops it, and parses and checks its output. Makes, converts and dumps recordings.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "live/child_process.hpp"

namespace rtev::test {

using Json = nlohmann::json;

/// The binary under test.
std::string tool();

/// Parses JSON objects, one per line. Another line fails the test, and is an empty object.
std::vector<Json> json_lines(const std::string& text);

/// Output of one run of `rtev-bpf -f jsonl`. parse() checks each line against the schema, and the invariants of every
/// run: order, counts, one header, one summary.
struct Trace {
  Json header;
  std::vector<Json> events;
  Json summary;

  static Trace parse(const std::string& lines);

  /// Events of a type; of one process if `pid` is given.
  std::vector<Json> of(std::string_view type) const;
  std::vector<Json> of(pid_t pid, std::string_view type) const;
  /// The events and summaries of each process.
  std::map<pid_t, Trace> by_process() const;
  /// Events from the rings of a process, in stream order.
  std::vector<Json> from_rings(pid_t pid) const;
  /// The process events of a process, in order: "found", "ring", "exit".
  std::vector<std::string> actions(pid_t pid) const;
  /// The only process event with that action. Otherwise fails the test and returns an empty object.
  Json action(pid_t pid, std::string_view action) const;
  /// Figures of a process in the summary, summed over its images.
  std::map<std::string, std::uint64_t> words(pid_t pid) const;
  /// The summary's entry of a process; an empty object if there is none.
  Json process(pid_t pid) const;
  /// Number of words in the process's loss events.
  std::uint64_t lost_words(pid_t pid) const;
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
/// The line of `rtev-bpf ps` for a process.
std::string ps_line(pid_t pid);

/// Runs `rtev-bpf dump` on a recording, a ring file or a pid: JSON lines and messages. The exit status must be 0.
Outcome dump(const std::string& source, std::vector<std::string> options = {});
/// The same, and parses the JSON lines.
Trace dumped(const std::string& source, std::vector<std::string> options = {});
/// Runs `rtev-bpf convert`; the suffix of `to` selects the format.
void convert(const std::filesystem::path& from, const std::filesystem::path& to);

/// The first line in which both texts differ; empty if they are equal.
std::string first_difference(std::string_view expected, std::string_view got);

}  // namespace rtev::test
