// SPDX-License-Identifier: MIT
// The fixture of the tests of analyses: reports of programs that run, and of recordings of them.
#pragma once

#include "live/harness.hpp"

namespace rtev::test {

class AnalysisLive : public LiveTest {
 protected:
  using Strings = std::vector<std::string>;

  struct Recorded {
    std::string path;
    std::string out;  ///< of the program
  };
  /// `rtev-bpf record -- PROGRAM ARGUMENTS`, where the file's ending tells the format.
  Recorded record(const std::string& file, Strings program, const Command& how = {}) const;
  /// The same with what the file holds.
  Trace dump(const std::string& path) const;

  /// Runs an analysis to its end: the JSON objects that it writes, one a line.
  std::vector<Json> reports(Strings arguments) const;
  /// The only one.
  Json report(const Strings& arguments) const;
  /// The same of a program under the tracer, with what the program said.
  struct Followed {
    Json report;
    std::string out;
    ExitStatus status;
  };
  Followed report_of(Strings arguments, const Strings& program) const;

  /// A tracer that analyses what runs. Its report comes with interrupt().
  static Tracer::Options analysis(const std::string& name, const std::string& format = "json") {
    return {.format = {name, "-f", format}};
  }
};

/// JSON objects, one a line.
std::vector<Json> json_lines(const std::string& text);
/// The entry of a process in a report; an empty object, and a failed test, if there is none.
Json process_in(const Json& report, pid_t pid);
/// The text of a file.
std::string content_of(const std::filesystem::path& path);

}  // namespace rtev::test
