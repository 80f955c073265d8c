// SPDX-License-Identifier: MIT
// Servers that keep metrics and answer PromQL: Prometheus and VictoriaMetrics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "live/child_process.hpp"
#include "live/tracer.hpp"

namespace rtev::test {

/// A running server with Prometheus's API for queries.
class MetricsStore {
 public:
  std::uint16_t port() const { return port_; }
  /// "data" of an answer of the API. An error fails the test.
  Json get(const std::string& path) const;
  /// Results of a query as of now: labels and values.
  Json query(const std::string& expression) const;
  /// The only value; nothing if there is none.
  std::optional<double> value(const std::string& expression) const;
  /// Waits until the query has this value; fails the test after wait_timeout.
  void wait_for(const std::string& expression, double expected) const;

 protected:
  MetricsStore();
  /// Waits until the path answers; throws if the server does not start.
  void start(const Command& command, const std::string& ready_path);

 private:
  std::uint16_t port_;
  std::optional<Process> process_;
};

/// Scrapes, and keeps its data in a folder.
class Prometheus : public MetricsStore {
 public:
  Prometheus(const std::filesystem::path& folder, const std::string& configuration);

  /// Path of promtool.
  static std::string promtool();
};

/// Takes OTLP, and keeps its data in a folder.
class VictoriaMetrics : public MetricsStore {
 public:
  explicit VictoriaMetrics(const std::filesystem::path& folder);

  /// For --otlp.
  std::string otlp_url() const { return "http://127.0.0.1:" + std::to_string(port()) + "/opentelemetry"; }
};

/// Why they cannot run here; empty if they can.
std::string metrics_stores_obstacle();

}  // namespace rtev::test
