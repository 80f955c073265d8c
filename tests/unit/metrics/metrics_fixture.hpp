// SPDX-License-Identifier: MIT
// A traced world whose metrics are taken, and a visitor that keeps them by name.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "metrics/metrics_sink.hpp"
#include "unit/analysis/scheduling.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {

/// Metrics by "name{key=value,…}", without the unit.
class MetricCollector final : public MetricVisitor {
 public:
  void family(const MetricFamily& family) override {
    EXPECT_TRUE(families.emplace(std::string(family.name), family).second) << family.name;
    name_ = family.name;
  }
  void value(MetricLabels labels, std::int64_t amount) override {
    EXPECT_TRUE(values.emplace(series(labels), amount).second) << series(labels);
  }
  void histogram(MetricLabels labels, const DurationHistogram& histogram) override {
    EXPECT_TRUE(histograms.emplace(series(labels), histogram).second) << series(labels);
  }

  std::map<std::string, MetricFamily> families{};
  std::map<std::string, std::set<std::string>> keys{};  ///< labels, by name
  std::map<std::string, std::int64_t> values{};
  std::map<std::string, DurationHistogram> histograms{};

 private:
  std::string series(MetricLabels labels) {
    std::string text = name_;
    for (const auto& [key, value] : labels) {
      keys[name_].emplace(key);
      text += fmt::format("{}{}={}", text == name_ ? "{" : ",", key, value);
    }
    return labels.empty() ? text : text + "}";
  }
  std::string name_;
};

class MetricsTest : public testing::Test {
 protected:
  static constexpr std::uint64_t hour = 3'600'000'000'000;

  MetricsTest() { make({}); }

  void make(MetricsOptions options) {
    options.groups = GroupTemplate::parse("{service|exe}").value();
    metrics = std::make_unique<MetricsSink>(std::move(options));
    metrics->header({.version = "1.2", .host = "box", .start_ns = 1, .start_realtime_ns = 1'000'000'001});
  }
  void feed(const Events& events) { metrics->consume(events.batch(), world.registry); }
  void play(const std::string& script) { feed(Events(world.slot).add(script)); }
  ProcessIndex add_process(std::int32_t pid, const std::string& exe, std::uint32_t user = 0) {
    ProcessInfo info = World::default_info();
    info.pid = pid;
    info.user = user;
    info.exe = "/bin/" + exe;
    return world.registry.add_process(std::move(info));
  }
  void process(std::uint64_t time, ProcessAction action, ProcessIndex index, std::int64_t detail = 0) {
    feed(Events(0).add_record(time, EventKind::process, ProcessRecord{index, 0, detail},
                              static_cast<std::uint16_t>(action)));
  }
  void process(std::uint64_t time, ProcessAction action, std::int64_t detail = 0) {
    process(time, action, world.process, detail);
  }
  void count(std::uint64_t time, std::string_view name, std::uint64_t value, std::uint16_t domain = 0,
             std::uint32_t slot = 0) {
    const auto id = static_cast<std::uint16_t>(find_counter(Family::since_5_3, name).value());
    feed(Events(slot == 0 ? world.slot : slot).add(time, EventKind::counter, id, value, domain));
  }
  template <typename Record>
  void scheduler(std::uint64_t time, EventKind kind, const Record& record) {
    feed(Events(0).add_record(time, kind, record, 0, first_sched_stream));
  }

  MetricCollector collected() {
    MetricCollector collector;
    metrics->visit(collector);
    return collector;
  }
  /// Nothing if there is no such series.
  std::optional<std::int64_t> value(const std::string& series) {
    const MetricCollector collector = collected();
    const auto found = collector.values.find(series);
    return found != collector.values.end() ? std::optional(found->second) : std::nullopt;
  }
  DurationHistogram histogram(const std::string& series) {
    const MetricCollector collector = collected();
    const auto found = collector.histograms.find(series);
    EXPECT_NE(found, collector.histograms.end()) << series;
    return found != collector.histograms.end() ? found->second : DurationHistogram{};
  }

  World world;
  std::unique_ptr<MetricsSink> metrics;
};

}  // namespace rtev::test
