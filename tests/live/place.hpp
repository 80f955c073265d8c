// SPDX-License-Identifier: MIT
// Containers made by the tests: namespaces, root directories and file systems for one program. All mounts are in a
// mount namespace that ends with the program.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "live/harness.hpp"
#include "live/oracle.hpp"

namespace rtev::test {

/// Where a program runs.
struct Place {
  std::string label;  ///< name of the test parameter
  std::string what;   ///< row of docs/tested.md
  /// Options of unshare(1); none: no new namespaces.
  Strings unshare{};
  /// Run by sh(1) in the new namespaces. Must end with exec "$@", which is the program. $ROOT is a folder of this place
  /// with the static program in /bin, folders rings, old and mnt, and a folder image with the same program.
  std::string script{R"(exec "$@")"};
  bool own_root = false;            ///< whether the script's last command sees $ROOT as its root directory
  std::optional<uid_t> user{};      ///< creates the namespaces; root if empty
  std::int64_t clock_offset_s = 0;  ///< offset of CLOCK_MONOTONIC in the program

  bool has_pid_namespace() const;
  /// The path of a file in $ROOT, as the script's last command sees it.
  fs::path path(const fs::path& root, const std::string& name) const;
};

/// Overlayfs, pivot_root and namespaces as container engines make them.
Place engine_place();

/// Fills a folder so that it can become the root directory of one place.
void create_root(const fs::path& root);

/// tests/ocaml/contained.ml in a place, with its known output. OCaml's own reader follows its ring, on any file system.
class Contained {
 public:
  /// Returns when the program waits at its first gate.
  Contained(const Place& place, const fs::path& root, const std::string& count = "100");

  pid_t pid() const { return pid_; }              ///< pid on the host
  pid_t inner_pid() const { return inner_pid_; }  ///< pid in its own namespace
  /// Runs the program to its end.
  void run();
  /// Kills the program.
  void end() { process_.signal(SIGKILL); }
  /// After run(): expects the whole program in a trace: process info, every event of its ring exactly once, exit,
  /// scheduler events of its threads, all in the host's time.
  void expect_in(const Trace& trace);

 private:
  void expect_process_info(const Trace& trace) const;
  void expect_turns(const Trace& trace) const;

  std::int64_t clock_offset_s_;
  Process process_;
  pid_t pid_, inner_pid_;
  std::uint64_t start_ticks_;
  FollowingOracle oracle_;
  std::set<pid_t> threads_;      ///< tids on the host
  std::size_t user_events_ = 0;  ///< number of events that the program says it wrote
};

/// Records of a ring, converted to the host's time.
Records on_host_clock(const Records& records, std::int64_t clock_offset_s);

/// Command line that runs a command in a place.
Command in_place(const Place& place, const fs::path& root, Strings argv);
/// The program that such a command has started.
pid_t innermost(pid_t command);

}  // namespace rtev::test
