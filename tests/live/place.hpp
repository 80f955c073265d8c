// SPDX-License-Identifier: MIT
// Containers of the tests' own: namespaces, roots and file systems in which a program runs. All that is mounted is
// mounted in a namespace that ends with the program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {

/// Where a program runs.
struct Place {
  std::string label;  ///< of the test
  std::string what;   ///< in words
  /// Options of unshare(1); none: no new namespaces.
  std::vector<std::string> unshare{};
  /// Run by sh(1) in the new namespaces; must end by becoming "$@", the program. $ROOT is a folder of the place's own
  /// with the static program in /bin, folders rings, old and mnt, and the same program in a folder image.
  std::string script{R"(exec "$@")"};
  std::string program{"$ROOT/bin/contained"};  ///< its path, as the script's last command sees it
  std::string rings{"$ROOT/rings"};            ///< OCAML_RUNTIME_EVENTS_DIR, likewise
  std::optional<uid_t> user{};                 ///< who makes the namespaces, if not root
  std::int64_t clock_offset_s = 0;             ///< of the program's CLOCK_MONOTONIC

  bool has_pid_namespace() const;
};

void PrintTo(const Place& place, std::ostream* out);

/// A folder to be the root of one place.
void furnish(const std::filesystem::path& root);

/// tests/ocaml/contained.ml in a place, and what it is known to do there: OCaml's own reader follows its ring, whatever
/// file system that lies in.
class Contained {
 public:
  /// Returns once it waits at its first gate.
  Contained(const Place& place, const std::filesystem::path& root, const std::string& count = "100");

  pid_t pid() const { return pid_; }              ///< as the host sees it
  pid_t inner_pid() const { return inner_pid_; }  ///< as it sees itself
  /// Runs it to its end.
  void run();
  /// Ends it at once.
  void end() { process_.signal(SIGKILL); }
  /// Expects, once it has run, all of it in a trace: its facts, every event of its ring once and no more, its exit, its
  /// threads' turns on the cpus, all in times of this host.
  void expect_in(const Trace& trace);

 private:
  void expect_facts(const Trace& trace) const;
  void expect_turns(const Trace& trace) const;

  std::int64_t clock_offset_s_;
  Process process_;
  pid_t pid_, inner_pid_;
  std::uint64_t start_ticks_;
  FollowingOracle oracle_;
  std::set<pid_t> threads_;      ///< by the host's numbers
  std::size_t user_events_ = 0;  ///< that it says it wrote
};

/// Records of a ring, in times of this host.
Records on_host_clock(const Records& records, std::int64_t clock_offset_s);

/// The command that runs another one in a place.
Command in_place(const Place& place, const std::filesystem::path& root, std::vector<std::string> argv);

}  // namespace rtev::test
