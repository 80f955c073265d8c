// SPDX-License-Identifier: MIT
// The fixture of live tests: real OCaml programs under a real tracer on the running kernel.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "live/process.hpp"
#include "live/tracer.hpp"
#include "support/temp_dir.hpp"

namespace rtev::test {

/// Path of a compiled program of tests/ocaml.
std::string ocaml_program(const std::string& name);

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
  /// Keeps all cpus busy until the end of the test.
  void occupy_cpus();
  std::filesystem::path ring_of(pid_t pid) const { return dir / (std::to_string(pid) + ".events"); }

  TempDir dir;

 private:
  std::deque<Process> spinners_;
};

/// Lets a program pass all its gates and run to its end.
Outcome run_through(Process& process);

}  // namespace rtev::test
