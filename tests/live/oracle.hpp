// SPDX-License-Identifier: MIT
// What OCaml's own consumer reads from a ring file, and what the tracer delivered, in one form that can be compared.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "live/tracer.hpp"

namespace rtev::test {

/// Events of each domain in order, each as one line of text: time, kind, name, value.
using Records = std::map<int, std::vector<std::string>>;

/// Reads DIR/PID.events, of a live process or a dead one, with a small OCaml program. It shares no code with librtev.
/// `reader` is that program, of the version of OCaml that wrote the file.
Records oracle(const std::filesystem::path& directory, pid_t pid, const std::filesystem::path& reader);
Records oracle(const std::filesystem::path& directory, pid_t pid);

/// The same for many of them, each by its pid, read by one run of the program.
std::map<pid_t, Records> oracle(const std::filesystem::path& directory, const std::vector<pid_t>& pids);

/// The same reader following a ring: it has read all that there was when the object is made, and reads what came since
/// when it is asked for the records.
class FollowingOracle {
 public:
  FollowingOracle(const std::filesystem::path& directory, pid_t pid);
  /// From the beginning of the ring. Once.
  Records take();

 private:
  Process process_;
};

/// One record.
std::string record(std::uint64_t time, const std::string& kind, const std::string& name, const std::string& value);

/// The same form of the JSON events of a ring.
Records records(const std::vector<Json>& events);

/// Empty if both are the same; else where they differ first, in words.
std::string difference(const Records& expected, const Records& got);

/// Checks that the trace has all events of a ring as they are in the file that was left behind, and that the accounts
/// of the process say so.
void expect_exact(const Trace& trace, const Records& left, pid_t pid);
void expect_exact(const Trace& trace, const std::filesystem::path& directory, pid_t pid);

/// How many of the records say `kind` and `name`.
std::size_t count(const Records& records, const std::string& kind, const std::string& name);

}  // namespace rtev::test
