// SPDX-License-Identifier: MIT
#include "metrics/prometheus_text.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/escape.hpp"
#include "unit/stream/world.hpp"

namespace rtev {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(PrometheusText, NamesCarryUnitAndKind) {
  PrometheusText text;
  text.family({.name = "a_wait", .unit = "seconds", .help = "Waits.", .type = MetricType::counter});
  text.value({}, 1'500'000'000);
  text.family({.name = "a_size", .unit = "bytes", .help = "Sizes.", .type = MetricType::gauge});
  const MetricLabel labels[]{{"group", "web"}, {"space", "pool"}};
  text.value(labels, -3);
  EXPECT_EQ(text.text(),
            "# HELP a_wait_seconds_total Waits.\n"
            "# TYPE a_wait_seconds_total counter\n"
            "a_wait_seconds_total 1.5\n"
            "# HELP a_size_bytes Sizes.\n"
            "# TYPE a_size_bytes gauge\n"
            "a_size_bytes{group=\"web\",space=\"pool\"} -3\n");
}

TEST(PrometheusText, SecondsAreExact) {
  const std::pair<std::int64_t, const char*> times[]{{0, "0"},
                                                     {1, "0.000000001"},
                                                     {100, "0.0000001"},
                                                     {1'000'000'000, "1"},
                                                     {1'000'000'001, "1.000000001"},
                                                     {10'010'000'000, "10.01"},
                                                     {INT64_MAX, "9223372036.854775807"}};
  for (const auto& [ns, expected] : times) {
    PrometheusText text;
    text.family({.name = "t", .unit = "seconds", .help = "T.", .type = MetricType::gauge});
    text.value({}, ns);
    EXPECT_EQ(lines_of(text.text()).back(), std::string("t_seconds ") + expected);
  }
}

TEST(PrometheusText, BucketsAreCumulative) {
  DurationHistogram histogram;
  for (const std::uint64_t ns : {10'000ULL, 10'001ULL, 30'000ULL, 20'000'000'000ULL}) histogram.record(ns);
  PrometheusText text;
  text.family({.name = "p", .unit = "seconds", .help = "P.", .type = MetricType::histogram});
  const MetricLabel labels[]{{"group", "web"}};
  text.histogram(labels, histogram);
  const auto lines = lines_of(text.text());
  ASSERT_EQ(lines.size(), 2 + DurationHistogram::bounds_ns.size() + 3);
  EXPECT_EQ(lines[1], "# TYPE p_seconds histogram");
  EXPECT_EQ(lines[2], "p_seconds_bucket{group=\"web\",le=\"1e-05\"} 1");
  EXPECT_EQ(lines[3], "p_seconds_bucket{group=\"web\",le=\"2.5e-05\"} 2");
  EXPECT_EQ(lines[4], "p_seconds_bucket{group=\"web\",le=\"5e-05\"} 3");
  EXPECT_EQ(lines[19], "p_seconds_bucket{group=\"web\",le=\"10\"} 3");
  EXPECT_EQ(lines[20], "p_seconds_bucket{group=\"web\",le=\"+Inf\"} 4");
  EXPECT_EQ(lines[21], "p_seconds_sum{group=\"web\"} 20.000050001");
  EXPECT_EQ(lines[22], "p_seconds_count{group=\"web\"} 4");
  // The bounds that are written are those that durations are compared with.
  for (std::size_t i = 0; i < DurationHistogram::bounds_ns.size(); ++i) {
    const std::string& line = lines[2 + i];
    const std::size_t begin = line.find("le=\"") + 4;
    EXPECT_DOUBLE_EQ(std::stod(line.substr(begin)) * 1e9, static_cast<double>(DurationHistogram::bounds_ns[i]));
  }
}

TEST(PrometheusText, ALabelValueCannotEndItsQuotes) {
  for (const std::string& hostile : test::hostile_strings()) {
    const std::string value = escaped(hostile);
    PrometheusText text;
    text.family({.name = "g", .unit = "", .help = "G.", .type = MetricType::gauge});
    const MetricLabel labels[]{{"group", value}};
    text.value(labels, 1);
    const auto lines = lines_of(text.text());
    ASSERT_EQ(lines.size(), 3U);
    // Read as Prometheus does.
    const std::string& line = lines[2];
    std::string read;
    std::size_t at = std::string("g{group=\"").size();
    for (; at < line.size() && line[at] != '"'; ++at) {
      if (line[at] == '\\') ++at;
      read += line[at];
    }
    EXPECT_EQ(read, value);
    EXPECT_EQ(line.substr(at), "\"} 1");
  }
}

}  // namespace
}  // namespace rtev
