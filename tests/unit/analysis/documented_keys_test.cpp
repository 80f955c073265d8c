// SPDX-License-Identifier: MIT
// The README names every key that a report has.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "formats/jsonl/jsonl_sink.hpp"
#include "unit/analysis/latency/latency_fixture.hpp"
#include "unit/analysis/pauses/pauses_fixture.hpp"
#include "unit/analysis/stats/stats_fixture.hpp"

namespace rtev::test {
namespace {

/// The part of the README about reports, from a line on that begins with this word to the next such line.
std::string part_of_readme(const std::string& word) {
  std::ifstream file(RTEV_README);
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  const std::size_t section = readme.find("\n## Reports as JSON\n");
  const std::size_t begin = readme.find("\n" + word + " ", section);
  if (section == std::string::npos || begin == std::string::npos) {
    ADD_FAILURE() << "no '" << word << "' among the reports in " << RTEV_README;
    return {};
  }
  std::size_t end = begin + 1;
  do end = readme.find('\n', end) + 1;
  while (end != 0 && (readme[end] == ' ' || readme[end] == '\n'));
  return readme.substr(begin, end - begin);
}

void add_quoted_words(std::string_view text, std::set<std::string>& words) {
  for (std::size_t quote = text.find('"'); quote != std::string_view::npos; quote = text.find('"')) {
    text.remove_prefix(quote + 1);
    const std::size_t end = text.find('"');
    words.emplace(text.substr(0, end));
    text.remove_prefix(std::min(end, text.size() - 1) + 1);
  }
}

void add_keys(const nlohmann::json& value, std::set<std::string>& keys) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      keys.insert(key);
      add_keys(member, keys);
    }
  } else if (value.is_array()) {
    for (const auto& element : value) add_keys(element, keys);
  }
}

/// Percentiles are their own names.
bool is_number(std::string_view key) {
  return key.find_first_not_of("0123456789.") == std::string_view::npos;
}

void expect_documented(const std::string& command, const nlohmann::json& report) {
  EXPECT_EQ(report["type"], command);
  EXPECT_EQ(report["schema"], 1);
  EXPECT_TRUE(report["version"].is_string());
  EXPECT_TRUE(report["start_ns"].is_number_unsigned());
  EXPECT_TRUE(report["end_ns"].is_number_unsigned());
  std::set<std::string> documented, keys;
  add_quoted_words(part_of_readme("all"), documented);
  add_quoted_words(part_of_readme(command), documented);
  add_keys(report, keys);
  for (const std::string& key : keys)
    EXPECT_TRUE(is_number(key) || documented.contains(key)) << command << " has \"" << key << '"';
}

TEST(DocumentedStream, EveryKeyOfTheSummary) {
  World world;
  StringOutput output;
  JsonlSink sink{output};
  RunSummary summary;
  summary.complete = false;
  sink.summary(summary, world.registry);
  const auto line = nlohmann::json::parse(output.text());

  std::ifstream file(RTEV_README);
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = readme.find("{\"type\":\"summary\"");
  ASSERT_NE(begin, std::string::npos);
  std::set<std::string> documented, keys;
  add_quoted_words(std::string_view(readme).substr(begin, readme.find("```", begin) - begin), documented);
  for (const auto& [key, member] : line.items()) {
    keys.insert(key);
    // The members of these are kinds of events.
    if (key != "events" && key != "drops") add_keys(member, keys);
  }
  for (const std::string& key : keys) EXPECT_TRUE(documented.contains(key)) << "the summary has \"" << key << '"';
}

using DocumentedLatency = LatencyTest;

TEST_F(DocumentedLatency, EveryKey) {
  add(10, enters(a_thread(4242, 4242, 0)));
  pause(100, 10);
  latency->summary({.end_ns = start + 1000}, world.registry);
  expect_documented("latency", report());
}

using DocumentedPauses = PausesTest;

TEST_F(DocumentedPauses, EveryKey) {
  switches(100, enters(main_thread(), 0));
  switches(100, enters(other_thread(), 1));
  begin(1'000, phase_leader);
  begin(1'010, phase_start_barrier);
  switches(2'000, leaves(main_thread(), LeftState::preempted, 0, competitor()));
  switches(3'000, enters(main_thread(), 0, competitor()));
  switches(3'500, leaves(main_thread(), LeftState::sleeping, 0));
  begin(5'000, phase_handler, 1);
  begin(5'010, phase_start_barrier, 1);
  wakes_up(5'020, wakes(main_thread(), other_thread()));
  switches(5'030, enters(main_thread(), 0));
  end(6'000, phase_start_barrier, 1);
  end(6'010, phase_start_barrier);
  end(7'000, phase_handler, 1);
  end(7'100, phase_leader);
  loses(6'900, 8'000, 2);
  begin(9'000, phase_major);
  loses(9'500, 9'900, 0);
  play();
  const auto report = nlohmann::json::parse(pauses->report_json());
  const auto& pause = report["pauses"].at(0);
  ASSERT_FALSE(pause["waits_for_cpu"].empty());
  ASSERT_FALSE(pause["wakers"].empty());
  ASSERT_FALSE(pause["phases"].empty());
  ASSERT_EQ(pause["sections"].at(0)["domains"].size(), 2U);
  ASSERT_FALSE(report["unfinished"].empty());
  expect_documented("pauses", report);
}

using DocumentedStats = StatsTest;

TEST_F(DocumentedStats, EveryKey) {
  process(10, ProcessAction::exec);
  for (const std::string_view counter : heap_counters()) count(20, counter, 1);
  for (const std::string_view counter : trigger_counters()) count(20, counter, 1);
  feed(Events(world.slot).add(30, EventKind::user_unit, 1));
  lose(40, 50, 3);
  const auto report = nlohmann::json::parse(stats_json(stats.report(world.registry)));
  const auto& figures = report["processes"].at(0);
  ASSERT_EQ(figures["domains"].size(), 1U);
  ASSERT_EQ(figures["heap"].size(), heap_counters().size());
  ASSERT_FALSE(figures["user_event_counts"].empty());
  expect_documented("stats", report);
}

}  // namespace
}  // namespace rtev::test
