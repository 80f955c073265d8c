// SPDX-License-Identifier: MIT
// Pushes metrics and long pauses to a collector of OpenTelemetry: OTLP over HTTP, with retries.
#pragma once

#include <event2/dns.h>
#include <event2/http.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/tracer_client.hpp"
#include "rtev/error.hpp"

namespace rtev::agent {

struct OtlpOptions {
  std::string host{};
  std::uint16_t port = 4318;
  std::string base_path{};  ///< before /v1/metrics
  std::vector<std::pair<std::string, std::string>> headers{};
  std::chrono::milliseconds interval{60'000};
  std::chrono::milliseconds timeout{10'000};     ///< of a request
  std::chrono::milliseconds first_retry{1'000};  ///< twice as long each time
  bool spans = false;
};
/// "http://collector:4318"; 4318 is the default. Fails on other schemes, since TLS is the business of a collector on
/// this host, and on parts that would have no effect.
Result<OtlpOptions> parse_otlp_url(const std::string& url);

/// How a request ended.
enum class ExportResult : std::uint8_t { ok, retried, failed };
std::string_view to_string(ExportResult result);

/// What the collector does not take is asked for again later, and then newer: figures are cumulative. Of spans at most
/// max_held_bytes wait. One thread.
class OtlpExporter {
 public:
  static constexpr std::size_t max_held_bytes = std::size_t{1} << 20;

  OtlpExporter(event_base* base, OtlpOptions options, TracerClient& tracer);
  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

  /// Metrics of the exporter itself, in the text format of Prometheus.
  std::string metrics_text() const;

 private:
  struct FreeConnection {
    void operator()(evhttp_connection* freed) const { ::evhttp_connection_free(freed); }
  };
  struct FreeDns {
    void operator()(evdns_base* freed) const { ::evdns_base_free(freed, 0); }
  };
  /// What is sent to one path, a request at a time.
  struct Signal {
    OtlpExporter* exporter = nullptr;
    Request request{};
    std::string path{};
    std::unique_ptr<evhttp_connection, FreeConnection> connection{};
    std::string body{};       ///< compressed; of spans kept until it is taken
    EventPtr timer{};         ///< of the next request, or for the answer to this one
    bool is_posted = false;   ///< waits for the answer
    unsigned tries = 0;       ///< that failed, in a row
    bool has_failed = false;  ///< the last request did, and a warning said so
  };

  void add(Request request, const std::string& path);
  void push(Signal& signal);
  void post(Signal& signal);
  void on_response(Signal& signal, evhttp_request* response);
  void report_change(Signal& signal, bool has_failed, int status) const;
  void schedule(Signal& signal, std::chrono::milliseconds after);

  event_base* base_;
  OtlpOptions options_;
  TracerClient& tracer_;
  std::unique_ptr<evdns_base, FreeDns> dns_;
  std::vector<std::unique_ptr<Signal>> signals_;
  std::array<std::uint64_t, 3> requests_{};  ///< by ExportResult
};

}  // namespace rtev::agent
