// SPDX-License-Identifier: MIT
// docs/metrics.md has a row for each metric, with its type and labels, and for no other; the files in contrib/ use no
// other metrics.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "metrics/own_metrics.hpp"
#include "unit/metrics/metrics_fixture.hpp"

namespace rtev::test {
namespace {

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Row {
  std::string type;
  std::set<std::string> labels;
  bool operator==(const Row&) const = default;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.type;
  for (const std::string& label : row.labels) *out << ' ' << label;
}

/// Rows of tables: | `name` | type | `label`, `label` | meaning |
std::map<std::string, Row> documented() {
  std::map<std::string, Row> rows;
  std::istringstream document{file_text(RTEV_METRICS_DOCUMENT)};
  static const std::regex form{R"(\| `([a-z_]+)` \| (counter|gauge|histogram) \|([^|]*)\|.*)"}, word{"`([a-z]+)`"};
  for (std::string line; std::getline(document, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, form)) continue;
    Row row{.type = found[2], .labels = {}};
    const std::string labels = found[3];
    for (std::sregex_iterator label(labels.begin(), labels.end(), word), end; label != end; ++label)
      row.labels.insert((*label)[1]);
    EXPECT_TRUE(rows.emplace(found[1], std::move(row)).second) << found[1];
  }
  return rows;
}

class DocumentedMetrics : public MetricsTest {
 protected:
  /// All metrics that there can be, by their names in Prometheus.
  std::map<std::string, Row> emitted() {
    make({.user = {.events = {"*"}, .spans = {"*"}, .values = {"*"}}, .pause_span_ns = 1});
    world.user_names = {{1, "request"}, {2, "eio.fiber"}};
    process(1, ProcessAction::found);
    scheduler(2, EventKind::sched_switch, enters(a_thread(4242, 4242, 0)));
    play("100 [1 200 ]1");
    feed(Events(world.slot).add(300, EventKind::user_int, 1, 5).add(300, EventKind::user_int, 2, 7));
    for (const char* name : {"major_heap_pool_words", "major_heap_pool_live_words", "major_heap_large_words",
                             "major_heap_pool_frag_words", "major_heap_pool_live_blocks", "major_heap_large_blocks"})
      count(400, name, 1);
    MetricCollector all = collected();
    add_own_metrics(all, metrics->run());
    // Of the process that pushes, and of the flight recorder.
    for (const auto& [name, label] : {std::pair{"rtev_bpf_otlp_requests", "result"},
                                      {"rtev_bpf_dumps", "result"},
                                      {"rtev_bpf_dumps_suppressed", "reason"}}) {
      all.family({.name = name, .unit = {}, .help = {}, .type = MetricType::counter});
      const MetricLabel labels[]{{label, "x"}};
      all.value(labels, 0);
    }
    std::map<std::string, Row> rows;
    for (const auto& [name, family] : all.families) {
      std::string full = name;
      if (!family.unit.empty()) full.append("_").append(family.unit);
      if (family.type == MetricType::counter) full += "_total";
      rows[full] = {.type = family.type == MetricType::counter ? "counter"
                            : family.type == MetricType::gauge ? "gauge"
                                                               : "histogram",
                    .labels = all.keys[name]};
    }
    return rows;
  }
};

TEST_F(DocumentedMetrics, EachHasARow) {
  const auto served = emitted();
  auto rows = documented();
  for (const auto& [name, row] : served) {
    EXPECT_TRUE(rows.contains(name)) << name << " is not documented";
    EXPECT_EQ(rows[name], row) << name;
  }
  for (const auto& [name, row] : rows) EXPECT_TRUE(served.contains(name)) << name << " is not served";
}

TEST_F(DocumentedMetrics, FilesOfContribUseNoOther) {
  const auto rows = emitted();
  std::size_t used = 0;
  for (const char* folder : {"prometheus", "grafana"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(RTEV_CONTRIB) / folder)) {
      const std::string text = file_text(entry.path());
      // Names with a colon are those of recording rules.
      static const std::regex name{R"((^|[^a-z_:])((ocaml|rtev_bpf)_[a-z_]+)(?![a-z_:]))"};
      for (std::sregex_iterator found(text.begin(), text.end(), name), end; found != end; ++found) {
        std::string base = (*found)[2];
        for (const std::string suffix : {"_bucket", "_sum", "_count"})
          if (base.ends_with(suffix) && !rows.contains(base)) base.resize(base.size() - suffix.size());
        EXPECT_TRUE(rows.contains(base)) << base << " in " << entry.path();
        ++used;
      }
    }
  }
  EXPECT_GT(used, 20U);
}

}  // namespace
}  // namespace rtev::test
