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

/// Skips where live tests cannot run, but fails in CI: there they have to run.
class LiveTest : public ::testing::Test {
 protected:
  void SetUp() override;

  /// A program that does not write events unless it switches them on by itself. Its ring then lies in dir.
  Command program(const std::string& name, std::vector<std::string> arguments = {}) const;
  /// With events from its start.
  Command with_events(const std::string& name, std::vector<std::string> arguments = {}) const;
  /// With events, and a ring that stays behind for the oracle.
  Command preserved(const std::string& name, std::vector<std::string> arguments = {}) const;
  /// All cpus have other things to do until the end of the test.
  void occupy_cpus();
  std::filesystem::path ring_of(pid_t pid) const { return dir / (std::to_string(pid) + ".events"); }

  TempDir dir;

 private:
  std::deque<Process> spinners_;
};

/// Lets a program run through all its gates to its end.
Outcome run_through(Process& process);

}  // namespace rtev::test
