// SPDX-License-Identifier: MIT
// The fixture of live tests: real OCaml programs under a real tracer on the running kernel.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "live/child_process.hpp"
#include "live/tracer.hpp"
#include "support/files.hpp"
#include "support/temp_dir.hpp"

namespace rtev::test {

// Names that most live tests use.
namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using ::testing::AllOf, ::testing::AnyOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::Each;
using ::testing::ElementsAre, ::testing::Ge, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::IsSupersetOf;
using ::testing::Le, ::testing::Lt, ::testing::Not, ::testing::SizeIs, ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

/// Names a test after its parameter, or after the parameter's label.
inline constexpr auto by_label = [](const auto& test) {
  std::string name;
  if constexpr (requires { test.param.label; })
    name = test.param.label;
  else
    name = test.param;
  std::erase(name, '.');
  return name;
};

/// Records which case of docs/tested.md a live test proves: `group` is "binary", "place", "lifecycle", "kernel"…,
/// `what` describes the case in a few words ("stripped and static"), `ocaml` is the version of the program. Call once
/// per test.
inline void covers(const std::string& group, const std::string& what, const std::string& ocaml = "5.3.0") {
  ::testing::Test::RecordProperty("matrix", group + "|" + what + "|" + ocaml);
}

/// Path of a compiled program of tests/ocaml.
std::string ocaml_program(const std::string& name);
/// The compiler of these programs, which is one itself.
std::string ocaml_compiler();

/// Why live tests cannot run here; empty if they can.
std::string live_obstacle();

/// Skips the test where live tests cannot run. In CI, fails instead.
class LiveTest : public ::testing::Test {
 protected:
  void SetUp() override;

  /// A program with events off, unless it starts them itself. Ring files go to dir.
  Command program(const std::string& name, std::vector<std::string> arguments = {}) const;
  /// The same with events on from the start.
  Command with_events(const std::string& name, std::vector<std::string> arguments = {}) const;
  /// The same with events on, and a ring file that stays after the exit, for the oracle.
  Command preserved(const std::string& name, std::vector<std::string> arguments = {}) const;
  /// A copy of a program in dir: a binary that no tracer has inspected.
  Command copied(Command command, const std::string& name) const;
  /// Runs a program to its end, expects this exit code, and returns its pid.
  static pid_t run_to_end(const Command& command, int code = 0);
  /// Keeps all cpus busy until the end of the test.
  void occupy_cpus();
  fs::path ring_of(pid_t pid) const { return dir / (std::to_string(pid) + ".events"); }

  TempDir dir;

 private:
  std::deque<Process> spinners_;
};

}  // namespace rtev::test
