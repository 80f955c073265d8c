// SPDX-License-Identifier: MIT
#include "live/analysis_fixture.hpp"

namespace rtev::test {

AnalysisLive::Recorded AnalysisLive::record(const std::string& file, Strings program, const Command& how) const {
  const std::string path = dir / file;
  Strings arguments{"record", "-q", "-o", path, "--"};
  arguments.insert(arguments.end(), program.begin(), program.end());
  const Outcome outcome = run_tool(arguments, how);
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  return {.path = path, .out = outcome.out};
}

std::vector<Json> AnalysisLive::reports(Strings arguments) const {
  arguments.insert(arguments.begin() + 1, {"-f", "json"});
  const Outcome outcome = run_tool(arguments);
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  return json_lines(outcome.out);
}

Json AnalysisLive::report(const Strings& arguments) const {
  const std::vector<Json> all = reports(arguments);
  EXPECT_EQ(all.size(), 1u) << ::testing::PrintToString(arguments);
  return all.empty() ? Json::object() : all.front();
}

AnalysisLive::Followed AnalysisLive::report_of(Strings arguments, const Strings& program) const {
  const std::string path = dir / "report.json";
  arguments.insert(arguments.end(), {"-q", "-f", "json", "-o", path, "--"});
  arguments.insert(arguments.end(), program.begin(), program.end());
  const Outcome outcome = run_tool(arguments);
  const std::vector<Json> written = json_lines(read_file(path));
  EXPECT_EQ(written.size(), 1u) << outcome.err;
  return {.report = written.empty() ? Json::object() : written.front(), .out = outcome.out, .status = outcome.status};
}

Json process_in(const Json& report, pid_t pid) {
  for (const Json& process : report.at("processes"))
    if (process.at("pid") == pid) return process;
  ADD_FAILURE() << pid << " is not in the report";
  return Json::object();
}

}  // namespace rtev::test
