// SPDX-License-Identifier: MIT
// What OCaml's own reader finds in a ring file, and what the tracer delivered, in a common form for comparison.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "live/tracer.hpp"

namespace rtev::test {

/// Events of each domain in order, each as one line of text: time, kind, name, value.
using Records = std::map<int, std::vector<std::string>>;

/// Reads DIR/PID.events, of a running or ended process, with a small OCaml program. It shares no code with librtev.
/// `reader` is that program, built with the version of OCaml that wrote the file.
Records oracle(const std::filesystem::path& directory, pid_t pid, const std::filesystem::path& reader);
Records oracle(const std::filesystem::path& directory, pid_t pid);

/// The same for several files, by pid, in one run of the reader.
std::map<pid_t, Records> oracle(const std::filesystem::path& directory, const std::vector<pid_t>& pids);

/// The same reader, following a live ring. The constructor returns when it has read everything written so far;
/// records() reads the rest.
class FollowingOracle {
 public:
  FollowingOracle(const std::filesystem::path& directory, pid_t pid);
  /// All records from the beginning of the ring. Call once.
  Records take();

 private:
  Process process_;
};

/// Formats one record.
std::string record(std::uint64_t time, const std::string& kind, const std::string& name, const std::string& value);

/// Converts the JSON events of a ring to the same form.
Records records(const std::vector<Json>& events);

/// Describes the first difference; empty if both are equal.
std::string difference(const Records& expected, const Records& got);

/// Checks that the trace has all events of the ring file that the process left, and that its counts agree.
void expect_exact(const Trace& trace, const Records& left, pid_t pid);
void expect_exact(const Trace& trace, const std::filesystem::path& directory, pid_t pid);

/// Checks that all words that a process wrote were delivered, and that it wrote some.
void expect_all_delivered(const Trace& trace, pid_t pid);

/// Numbers of the events "step" of module Counting, in stream order; of one process image if `comm` is given.
std::vector<std::int64_t> steps(const Trace& trace, pid_t pid, const std::string& comm = {});
/// 1, 2, … count.
std::vector<std::int64_t> count_to(std::int64_t count);

/// Number of records of this kind and name.
std::size_t count(const Records& records, const std::string& kind, const std::string& name);

}  // namespace rtev::test
