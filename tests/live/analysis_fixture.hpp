// SPDX-License-Identifier: MIT
// Fixture of the tests of latency, pauses and stats: reports of running programs and of recordings.
#pragma once

#include "live/harness.hpp"

namespace rtev::test {

class AnalysisLive : public LiveTest {
 protected:
  struct Recorded {
    std::string path;
    std::string out;  ///< stdout of the program
  };
  /// Runs `rtev-bpf record -- PROGRAM ARGUMENTS`. The suffix of the file selects the format.
  Recorded record(const std::string& file, Strings program, const Command& how = {}) const;

  /// Runs an analysis to its end and returns the JSON objects it wrote, one per line.
  std::vector<Json> reports(Strings arguments) const;
  /// The same for a run that writes one report.
  Json report(const Strings& arguments) const;
  /// The same for a program started by the tracer; also returns the program's output.
  struct Followed {
    Json report;
    std::string out;
    ExitStatus status;
  };
  Followed report_of(Strings arguments, const Strings& program) const;

  /// Starts a tracer that analyses running programs. interrupt() makes it report.
  static Tracer::Options analysis(const std::string& name, const std::string& format = "json") {
    return {.format = {name, "-f", format}};
  }
};

/// The entry of a process in a report. If there is none: fails the test and returns an empty object.
Json process_in(const Json& report, pid_t pid);

}  // namespace rtev::test
