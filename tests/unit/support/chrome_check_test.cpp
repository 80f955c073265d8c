// SPDX-License-Identifier: MIT
// A checker that finds nothing wrong with anything would be of no use.
#include "support/chrome_check.hpp"

#include <gmock/gmock.h>

namespace rtev::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> problems_of(const std::string& events) {
  return read_cut_chrome_trace(R"([{"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"p"}},
      {"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"t"}},
      {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"u"}},)" +
                               events)
      .problems;
}

TEST(ChromeCheck, ReadsSpansByTimeAndOrder) {
  const ChromeTrace trace = read_cut_chrome_trace(R"([
      {"ph":"M","name":"process_name","pid":1,"tid":1,"args":{"name":"p"}},
      {"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"t"}},
      {"ph":"B","ts":2.0002,"pid":1,"tid":1,"name":"inner"},
      {"ph":"E","ts":3.0002,"pid":1,"tid":1},
      {"ph":"B","ts":1.0002,"pid":1,"tid":1,"name":"outer"},
      {"ph":"E","ts":3.0002,"pid":1,"tid":1,"args":{"end":"x"}},
)");
  EXPECT_THAT(trace.problems, IsEmpty());
  const auto& spans = trace.spans.at(trace.row("t"));
  EXPECT_EQ(spans.at(0).name, "outer");
  EXPECT_EQ(spans.at(0).to, 3000U);
  EXPECT_EQ(spans.at(0).args.at("end"), "x");
  EXPECT_EQ(spans.at(1).depth, 1U);
}

TEST(ChromeCheck, FindsWhatIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"ph":"E","ts":1,"pid":1,"tid":1})", "end without begin"},
      {R"({"ph":"B","ts":1,"pid":1,"tid":1})", "not an event"},
      {R"({"ph":"B","ts":"1","pid":1,"tid":1,"name":"x"})", "not an event"},
      {R"({"ph":"B","ts":1,"pid":1,"tid":3,"name":"x"})", "row without a name"},
      {R"({"ph":"B","ts":1,"pid":2,"tid":1,"name":"x"})", "process without a name"},
      {R"({"ph":"i","ts":1.001,"pid":1,"tid":1,"name":"x","s":"t"})", "time that viewers read differently"},
      {R"({"ph":"i","ts":1,"pid":1,"tid":1,"name":"x"})", "unknown scope"},
      {R"({"ph":"C","ts":1,"pid":1,"tid":1,"name":"x","args":{"a":"b"}})", "value that is no number"},
      {R"({"ph":"s","ts":1,"pid":1,"tid":1,"name":"x","id":1})", "arrow outside of spans"},
      {R"({"ph":"B","ts":1,"pid":1,"tid":1,"name":"x"},{"ph":"f","ts":1,"pid":1,"tid":1,"name":"x","id":1,"bp":"e"})",
       "arrow from nowhere"},
      {R"({"ph":"T","ts":1,"dur":3,"pid":1,"tid":1,"name":"S"},{"ph":"T","ts":3,"dur":3,"pid":1,"tid":1,"name":"R"})",
       "states that overlap"},
      {R"({"ph":"T","ts":1,"dur":3,"pid":1,"tid":1,"name":"Running","args":{"cpu":0}},
          {"ph":"T","ts":3,"dur":3,"pid":1,"tid":2,"name":"Running","args":{"cpu":0}})",
       "turns on a cpu that overlap"},
      {R"({"ph":"?","ts":1,"pid":1,"tid":1,"name":"x"})", "unknown phase"},
      {R"({"ph":"B",)", "not an array of JSON"},
  };
  for (const auto& [events, problem] : wrong) EXPECT_THAT(problems_of(events), Contains(StartsWith(problem))) << events;
}

TEST(ChromeCheck, AFinishedTraceIsStrictlyValidAndClosesAll) {
  EXPECT_THAT(read_chrome_trace("[]").problems, ElementsAre("no header", "no summary"));
  EXPECT_THAT(read_chrome_trace("[{},]").problems, Contains("not an array of JSON"));
  const ChromeTrace trace = read_chrome_trace(R"([{"ph":"B","ts":1,"pid":1,"tid":1,"name":"x"}])");
  EXPECT_THAT(trace.problems, Contains("span that never ends: x"));
}

}  // namespace
}  // namespace rtev::test
