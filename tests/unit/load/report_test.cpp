// SPDX-License-Identifier: MIT
#include "load/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rtev::load {
namespace {

using Json = nlohmann::json;

ProcessReport example(pid_t pid) {
  ProcessReport report{.pid = pid, .path = "/tmp/a \"b\"/\x01.events", .duration_ns = 1'500'000'000, .domains = {}};
  for (std::uint64_t domain = 0; domain < 3; ++domain) {
    DomainReport& domain_report = report.domains.emplace_back();
    for (std::size_t kind = 0; kind < ring_kind_count; ++kind) domain_report.events[kind] = domain * 100 + kind;
    domain_report.words = 1'000'000'000'000 + domain;
    domain_report.first_ns = 17;
    domain_report.last_ns = UINT64_MAX;
  }
  return report;
}

TEST(LoadReport, DecodesWhatItEncodes) {
  const ProcessReport report = example(1234);
  EXPECT_EQ(decode(encode(report)), report);
  EXPECT_EQ(decode(encode({})), ProcessReport{});
}

TEST(LoadReport, RefusesIncompleteBytes) {
  const std::string bytes = encode(example(1));
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode(bytes.substr(0, size))) << size;
  EXPECT_FALSE(decode(bytes + 'x'));
}

TEST(LoadReport, JsonHasAllNumbers) {
  Totals totals;
  std::string text = json_header();
  for (const pid_t pid : {7, 8}) {
    text += (totals.processes == 0 ? "" : ",\n") + json_process(example(pid));
    totals.add(example(pid));
  }
  const Json json = Json::parse(text + json_footer(totals, 2'000'000'000));
  EXPECT_EQ(json["schema"], 1);
  ASSERT_EQ(json["processes"].size(), 2u);
  const Json& process = json["processes"][1];
  EXPECT_EQ(process["pid"], 8);
  EXPECT_EQ(process["path"], example(8).path);
  EXPECT_EQ(process["seconds"], 1.5);
  ASSERT_EQ(process["domains"].size(), 3u);
  const Json& domain = process["domains"][2];
  EXPECT_EQ(domain["domain"], 2);
  EXPECT_EQ(domain["events"]["begin"], 200);
  EXPECT_EQ(domain["events"]["user_custom"], 209);
  EXPECT_EQ(domain["events"].size(), ring_kind_count);
  EXPECT_EQ(domain["total"], 2045);
  EXPECT_EQ(domain["words"], 1'000'000'000'002);
  EXPECT_EQ(domain["first_ns"], 17);
  EXPECT_EQ(domain["last_ns"], UINT64_MAX);
  const Json& total = json["total"];
  EXPECT_EQ(total["processes"], 2);
  EXPECT_EQ(total["events"]["begin"], 600);
  EXPECT_EQ(total["total"], 2 * (45 + 1045 + 2045));
  EXPECT_EQ(total["words"], 6'000'000'000'006);
  EXPECT_EQ(total["seconds"], 2.0);
  EXPECT_EQ(total["events_per_second"], 3135);
}

TEST(LoadReport, JsonWithoutProcessesIsValid) {
  const Json json = Json::parse(json_header() + json_footer({}, 0));
  EXPECT_TRUE(json["processes"].empty());
  EXPECT_EQ(json["total"]["total"], 0);
}

}  // namespace
}  // namespace rtev::load
